-- What a job was submitted with never changes, so a conflict leaves it alone.
INSERT INTO jobs (
    run_id, tenant_id, agent, lane, priority, max_attempts, source, batch_id, item, schedule,
    status, error, queued_at, started_at, ended_at
)
SELECT * FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::integer[], $7::text[], $8::uuid[],
    $9::integer[], $10::text[], $11::text[], $12::text[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[]
)
ON CONFLICT (run_id) DO UPDATE SET
    status = excluded.status,
    error = excluded.error,
    started_at = excluded.started_at,
    ended_at = excluded.ended_at
