-- A stream's last event.
SELECT originator_id, originator_version, notification_id, recorded_at, tenant_id, topic, state
  FROM stored_events
 WHERE originator_id = $1
 ORDER BY originator_version DESC
 LIMIT 1
