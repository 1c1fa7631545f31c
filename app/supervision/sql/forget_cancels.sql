-- $1 runs that have ended, so that they need not be told to stop.
DELETE FROM cancel_requests WHERE run_id = ANY ($1::uuid[])
