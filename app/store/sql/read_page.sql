-- The log after a position, in its order. Whether it may be passed on is for the hole rule to say (holes.py).
SELECT originator_id, originator_version, notification_id, recorded_at, tenant_id, topic, state
  FROM stored_events
 WHERE notification_id > $1
 ORDER BY notification_id
 LIMIT $2
