-- Newest first. A filter that is null is none.
SELECT *
  FROM tool_calls
 WHERE tenant_id = $1
   AND state <> 'requested'
   AND ($2::uuid IS NULL OR run_id = $2)
   AND ($3::text IS NULL OR md5(tool) = md5($3) AND tool = $3)
   AND ($4::text IS NULL OR state = $4)
   AND ($5::timestamptz IS NULL OR requested_at >= $5)
   AND ($6::timestamptz IS NULL OR requested_at < $6)
 ORDER BY requested_at DESC, run_id DESC, ordinal DESC
OFFSET $7 LIMIT $8
