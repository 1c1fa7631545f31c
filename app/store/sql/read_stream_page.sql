-- The next part of one stream, oldest first.
-- At most $3 rows, and none that has $4 bytes of payload ahead of it: a page is held in memory.
SELECT originator_id, originator_version, notification_id, recorded_at, tenant_id, topic, state
  FROM (SELECT *, sum(octet_length(state)) OVER (ORDER BY originator_version) - octet_length(state) AS ahead
          FROM (SELECT *
                  FROM stored_events
                 WHERE originator_id = $1 AND originator_version > $2
                 ORDER BY originator_version
                 LIMIT $3) AS next) AS sized
 WHERE ahead < $4
 ORDER BY originator_version
