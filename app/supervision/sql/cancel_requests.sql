-- What was left for this host.
SELECT run_id, reason FROM cancel_requests WHERE host_id = $1 ORDER BY requested_at
