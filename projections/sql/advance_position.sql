UPDATE notification_tracking SET notification_id = $2 WHERE application_name = $1
