-- What a run was created with never changes, so a conflict leaves it alone.
INSERT INTO runs (
    run_id, tenant_id, kind, agent, status, provider, model_id, session_id,
    root_run_id, parent_run_id, depth, continued_from_run_id,
    continued_by_run_id, continuation_blocked, replay_of_run_id, error, error_type, error_class,
    input_tokens, output_tokens, cached_input_tokens, reasoning_tokens, cost, currency,
    events, created_at, started_at, ended_at, wait_over, reported_cost
)
SELECT * FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::uuid[], $10::uuid[], $11::integer[], $12::uuid[],
    $13::uuid[], $14::text[], $15::uuid[], $16::text[], $17::text[], $18::text[],
    $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[], $23::numeric[], $24::text[],
    $25::bigint[], $26::timestamptz[], $27::timestamptz[], $28::timestamptz[],
    $29::text[], $30::numeric[]
)
ON CONFLICT (run_id) DO UPDATE SET
    status = excluded.status,
    provider = excluded.provider,
    model_id = excluded.model_id,
    continued_by_run_id = excluded.continued_by_run_id,
    continuation_blocked = excluded.continuation_blocked,
    error = excluded.error,
    error_type = excluded.error_type,
    error_class = excluded.error_class,
    input_tokens = excluded.input_tokens,
    output_tokens = excluded.output_tokens,
    cached_input_tokens = excluded.cached_input_tokens,
    reasoning_tokens = excluded.reasoning_tokens,
    cost = excluded.cost,
    currency = excluded.currency,
    events = excluded.events,
    started_at = excluded.started_at,
    ended_at = excluded.ended_at,
    wait_over = excluded.wait_over,
    reported_cost = excluded.reported_cost
