-- These were delivered. Those that have found nobody for so many seconds never will.
DELETE FROM cancel_requests
 WHERE run_id = ANY ($1::uuid[]) OR requested_at < clock_timestamp() - make_interval(secs => $2)
