-- Runs that have been running for too long without anybody vouching for them, a page at a time: their hosts died before
-- their first beat, or write none.
--
-- $1 seconds, $2 and $3 the last one of the page before, $4 how many at most.
SELECT run.run_id, run.started_at AS since
  FROM runs AS run
 WHERE run.status = 'Running'
   AND run.started_at < clock_timestamp() - make_interval(secs => $1)
   AND (run.started_at, run.run_id) > ($2, $3)
   AND NOT EXISTS (SELECT FROM run_heartbeats AS vouched WHERE vouched.run_id = run.run_id)
 ORDER BY run.started_at, run.run_id
 LIMIT $4
