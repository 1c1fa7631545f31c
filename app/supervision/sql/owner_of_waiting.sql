-- The host that answers for a run which has not begun.
SELECT host_id FROM run_heartbeats WHERE run_id = $1
