-- Give leases up before they run out, so that other workers need not wait. One under which no run was begun was no
-- attempt.
WITH gone AS (
    UPDATE job_queue AS job
       SET leased_until = statement_timestamp(),
           attempts = job.attempts - CASE WHEN held.begun THEN 0 ELSE 1 END
      FROM unnest($1::uuid[], $2::bigint[], $3::boolean[]) AS held(run_id, term, begun)
     WHERE job.run_id = held.run_id AND job.term = held.term
    RETURNING job.run_id
)
SELECT pg_notify($4, '') WHERE EXISTS (SELECT FROM gone)
