SELECT * FROM approvals WHERE run_id = ANY ($1::uuid[])
