-- One stream, oldest first.
SELECT originator_id, originator_version, notification_id, recorded_at, tenant_id, topic, state
  FROM stored_events
 WHERE originator_id = $1 AND originator_version > $2
 ORDER BY originator_version
 LIMIT $3
