-- Runs that have waited for too long without anybody vouching for them, and in no queue, a page at a time: they waited for
-- their session inside of hosts that died before their next beat.
--
-- $1 seconds, $2 and $3 the last one of the page before, $4 how many at most.
SELECT run.run_id, run.created_at AS since
  FROM runs AS run
 WHERE run.status = 'Queued'
   AND run.created_at < clock_timestamp() - make_interval(secs => $1)
   AND (run.created_at, run.run_id) > ($2, $3)
   AND NOT EXISTS (SELECT FROM run_heartbeats AS vouched WHERE vouched.run_id = run.run_id)
   AND NOT EXISTS (SELECT FROM jobs AS job WHERE job.run_id = run.run_id)
 ORDER BY run.created_at, run.run_id
 LIMIT $4
