SELECT run_id, state FROM statistics_live_runs WHERE run_id = ANY ($1::uuid[])
