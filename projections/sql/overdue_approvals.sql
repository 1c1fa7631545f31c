-- Those whose time is over, the longest overdue first.
SELECT run_id
  FROM approvals
 WHERE state = 'pending'
   AND expires_at <= clock_timestamp()
 ORDER BY expires_at, run_id
 LIMIT $1
