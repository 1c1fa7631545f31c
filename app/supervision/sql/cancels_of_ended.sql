-- What is left for runs that have ended. The view may be behind; what it says of an end is true.
SELECT asked.run_id, asked.reason, run.status
  FROM cancel_requests AS asked
  JOIN runs AS run USING (run_id)
 WHERE run.ended_at IS NOT NULL
