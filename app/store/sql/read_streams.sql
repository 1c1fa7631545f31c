-- What is new in any of these streams, in one round trip. LIMIT is per stream.
SELECT e.originator_id, e.originator_version, e.notification_id, e.recorded_at, e.tenant_id, e.topic, e.state
  FROM unnest($1::uuid[], $2::bigint[]) AS wanted(stream, after)
 CROSS JOIN LATERAL (
       SELECT * FROM stored_events
        WHERE originator_id = wanted.stream AND originator_version > wanted.after
        ORDER BY originator_version
        LIMIT $3) AS e
