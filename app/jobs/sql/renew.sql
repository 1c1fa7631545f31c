-- Renew all leases of a host. Those that are missing in the answer are somebody else's by now, or their job has ended.
UPDATE job_queue AS job
   SET leased_until = clock_timestamp() + $3::interval
  FROM unnest($1::uuid[], $2::bigint[]) AS held(run_id, term)
 WHERE job.run_id = held.run_id AND job.term = held.term
RETURNING job.run_id
