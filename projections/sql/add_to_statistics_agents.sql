-- Counts of one page, added to those of earlier pages.
INSERT INTO statistics_agents AS known (
    tenant_id, day, agent, created, started, completed, failed, cancelled, ended_unstarted,
    tool_calls, failed_tool_calls, unknown_tool_calls, awaiting_approval, awaiting_input
)
SELECT * FROM unnest(
    $1::text[], $2::date[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[]
)
ON CONFLICT ON CONSTRAINT statistics_agents_one_row DO UPDATE SET
    created = known.created + excluded.created,
    started = known.started + excluded.started,
    completed = known.completed + excluded.completed,
    failed = known.failed + excluded.failed,
    cancelled = known.cancelled + excluded.cancelled,
    ended_unstarted = known.ended_unstarted + excluded.ended_unstarted,
    tool_calls = known.tool_calls + excluded.tool_calls,
    failed_tool_calls = known.failed_tool_calls + excluded.failed_tool_calls,
    unknown_tool_calls = known.unknown_tool_calls + excluded.unknown_tool_calls,
    awaiting_approval = known.awaiting_approval + excluded.awaiting_approval,
    awaiting_input = known.awaiting_input + excluded.awaiting_input
