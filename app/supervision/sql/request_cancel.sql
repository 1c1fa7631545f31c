-- Leave word for a run's owner and ring for it. Whoever asks again asks for the same.
WITH asked AS (
    INSERT INTO cancel_requests (run_id, host_id, reason)
    VALUES ($1, $2, $3)
        ON CONFLICT (run_id) DO UPDATE SET host_id = excluded.host_id, requested_at = clock_timestamp()
    RETURNING host_id
)
SELECT pg_notify($4, host_id) FROM asked
