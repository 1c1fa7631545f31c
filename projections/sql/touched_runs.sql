SELECT * FROM runs WHERE run_id = ANY ($1::uuid[])
