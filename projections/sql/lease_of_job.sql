SELECT owner, attempts, leased_until FROM job_queue WHERE run_id = $1
