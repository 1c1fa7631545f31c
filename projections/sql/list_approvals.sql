-- Newest first. A filter that is null is none.
SELECT *
  FROM approvals
 WHERE tenant_id = $1
   AND ($2::text IS NULL OR state = $2)
   AND ($3::text IS NULL OR agent = $3)
   AND ($4::text IS NULL OR session_id = $4)
 ORDER BY requested_at DESC, run_id DESC
OFFSET $5 LIMIT $6
