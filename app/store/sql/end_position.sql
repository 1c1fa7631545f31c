-- The highest position that is visible. A lower one may still become visible.
SELECT coalesce(max(notification_id), 0) FROM stored_events
