-- The run had ended before anybody could read this.
DELETE FROM cancel_requests WHERE run_id = $1
