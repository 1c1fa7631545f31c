INSERT INTO idempotency (
    stream_id, tenant_id, key, state, method, path, fingerprint, form, run_id, settled_by, status, reason,
    by_operator, events, reserved_at, settled_at
)
SELECT * FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::uuid[], $10::uuid[], $11::integer[], $12::text[], $13::boolean[], $14::bigint[],
    $15::timestamptz[], $16::timestamptz[]
)
ON CONFLICT (stream_id) DO UPDATE SET
    state = excluded.state,
    method = excluded.method,
    path = excluded.path,
    fingerprint = excluded.fingerprint,
    form = excluded.form,
    run_id = excluded.run_id,
    settled_by = excluded.settled_by,
    status = excluded.status,
    reason = excluded.reason,
    by_operator = excluded.by_operator,
    events = excluded.events,
    reserved_at = excluded.reserved_at,
    settled_at = excluded.settled_at
