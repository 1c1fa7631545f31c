-- What was asked for never changes, so a conflict leaves it alone.
INSERT INTO approvals (
    run_id, tenant_id, agent, session_id, state, calls, events, requested_at, expires_at,
    settled_at, settled_by, reason, opened_run_id
)
SELECT * FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
    $9::timestamptz[], $10::timestamptz[], $11::text[], $12::text[], $13::uuid[]
)
ON CONFLICT ON CONSTRAINT approvals_one_row DO UPDATE SET
    state = excluded.state,
    calls = excluded.calls,
    events = excluded.events,
    settled_at = excluded.settled_at,
    settled_by = excluded.settled_by,
    reason = excluded.reason,
    opened_run_id = excluded.opened_run_id
