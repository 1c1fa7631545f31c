-- The job's run has ended. The `jobs` view removes such jobs too, a little later; this is for who leased one before.
DELETE FROM job_queue WHERE run_id = $1 AND term = $2
