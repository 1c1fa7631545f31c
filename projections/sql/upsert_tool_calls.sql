-- What the model asked for never changes, but the arguments may: a call starts with those that were carried out.
INSERT INTO tool_calls (
    run_id, ordinal, tenant_id, step, reply_sequence, call_id, tool, state, effect, failure, arguments, output,
    truncated, call_key, safe_to_repeat, requested_at, started_at, ended_at, duration_ms, resolved
)
SELECT * FROM unnest(
    $1::uuid[], $2::integer[], $3::text[], $4::integer[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::boolean[], $14::text[], $15::boolean[],
    $16::timestamptz[], $17::timestamptz[], $18::timestamptz[], $19::bigint[], $20::boolean[]
)
ON CONFLICT (run_id, ordinal) DO UPDATE SET
    state = excluded.state,
    effect = excluded.effect,
    failure = excluded.failure,
    arguments = excluded.arguments,
    output = excluded.output,
    truncated = excluded.truncated,
    call_key = excluded.call_key,
    safe_to_repeat = excluded.safe_to_repeat,
    started_at = excluded.started_at,
    ended_at = excluded.ended_at,
    duration_ms = excluded.duration_ms,
    resolved = excluded.resolved
