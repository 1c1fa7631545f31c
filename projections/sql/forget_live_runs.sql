DELETE FROM statistics_live_runs WHERE run_id = ANY ($1::uuid[])
