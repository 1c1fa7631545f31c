-- The log after a position, in its order. Whether it may be passed on is for the hole rule to say (holes.py).
-- At most $2 rows, and none that has $3 bytes of payload ahead of it: a page is held in memory.
SELECT originator_id, originator_version, notification_id, recorded_at, tenant_id, topic, state
  FROM (SELECT *, sum(octet_length(state)) OVER (ORDER BY notification_id) - octet_length(state) AS ahead
          FROM (SELECT *
                  FROM stored_events
                 WHERE notification_id > $1
                 ORDER BY notification_id
                 LIMIT $2) AS next) AS sized
 WHERE ahead < $3
 ORDER BY notification_id
