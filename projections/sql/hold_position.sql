-- The same, waiting for whoever works at the moment.
SELECT notification_id FROM notification_tracking WHERE application_name = $1 FOR UPDATE
