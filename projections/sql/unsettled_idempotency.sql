-- Keys in progress whose run has ended a while ago: whoever should have settled them is late, or gone.
SELECT one.tenant_id, one.key, one.reserved_at, one.stream_id
  FROM idempotency AS one
  JOIN runs ON runs.run_id = one.run_id
 WHERE one.state = 'in_progress'
   AND (one.reserved_at, one.stream_id) > ($1, $2)
   AND runs.ended_at < clock_timestamp() - $3::interval
 ORDER BY one.reserved_at, one.stream_id
 LIMIT $4
