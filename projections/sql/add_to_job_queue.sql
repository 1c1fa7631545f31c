-- A row that is there has claims that are nobody's to change here. Whoever waits for work hears of it on commit.
WITH added AS (
    INSERT INTO job_queue (run_id, lane, priority, position, agent, max_attempts, queued_at)
    SELECT * FROM unnest(
        $1::uuid[], $2::text[], $3::integer[], $4::bigint[], $5::text[], $6::integer[], $7::timestamptz[]
    )
    ON CONFLICT (run_id) DO NOTHING
    RETURNING run_id
)
SELECT pg_notify($8, '') WHERE EXISTS (SELECT FROM added)
