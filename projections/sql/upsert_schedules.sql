INSERT INTO schedules (
    schedule_id, tenant_id, name, definition, paused, next_due, last_due, last_run_id, created_at, updated_at
)
SELECT * FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::timestamptz[], $7::timestamptz[], $8::uuid[],
    $9::timestamptz[], $10::timestamptz[]
)
ON CONFLICT (schedule_id) DO UPDATE SET
    definition = excluded.definition,
    paused = excluded.paused,
    next_due = excluded.next_due,
    last_due = excluded.last_due,
    last_run_id = excluded.last_run_id,
    created_at = excluded.created_at,
    updated_at = excluded.updated_at
