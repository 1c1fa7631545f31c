INSERT INTO notification_tracking (application_name, notification_id) VALUES ($1, 0)
ON CONFLICT (application_name) DO NOTHING
