SELECT notification_id FROM notification_tracking WHERE application_name = $1
