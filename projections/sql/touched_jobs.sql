SELECT * FROM jobs WHERE run_id = ANY ($1::uuid[])
