-- Whoever gets the row works; to others it is not there until this transaction ends, however it ends.
SELECT notification_id FROM notification_tracking WHERE application_name = $1 FOR UPDATE SKIP LOCKED
