-- Why each of these runs is to be stopped, where somebody asked for that.
SELECT run_id, reason FROM cancel_requests WHERE run_id = ANY ($1::uuid[])
