-- Newest first, each with what its first run has come to. A filter that is null is none.
SELECT one.*, runs.status AS run_status
  FROM (SELECT *
          FROM idempotency
         WHERE tenant_id = $1
           AND ($2::text IS NULL OR state = $2)
         ORDER BY reserved_at DESC, stream_id DESC
        OFFSET $3 LIMIT $4) AS one
  LEFT JOIN runs ON runs.run_id = one.run_id
 ORDER BY one.reserved_at DESC, one.stream_id DESC
