DELETE FROM job_queue WHERE run_id = ANY ($1::uuid[])
