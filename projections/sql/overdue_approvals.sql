-- Those whose time is over, the longest overdue first, behind the last one of the page before.
SELECT run_id, expires_at
  FROM approvals
 WHERE state = 'pending'
   AND expires_at <= clock_timestamp()
   AND (expires_at, run_id) > ($1, $2)
 ORDER BY expires_at, run_id
 LIMIT $3
