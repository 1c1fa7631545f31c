-- Newest first. A filter that is null is none; count_runs.sql has the same ones.
SELECT *
  FROM runs
 WHERE tenant_id = $1
   AND ($2::text IS NULL OR status = $2)
   AND ($3::text IS NULL OR agent = $3)
   AND ($4::text IS NULL OR md5(session_id) = md5($4) AND session_id = $4)
   AND ($5::text IS NULL OR model_id = $5)
   AND ($6::timestamptz IS NULL OR created_at >= $6)
   AND ($7::timestamptz IS NULL OR created_at < $7)
   AND (NOT $8 OR parent_run_id IS NULL)
 ORDER BY created_at DESC, run_id DESC
OFFSET $9 LIMIT $10
