-- Counts of one page, added to those of earlier pages. Sums of numeric are exact in any order.
INSERT INTO statistics_calls AS known (
    tenant_id, day, agent, provider, model_id, currency, runs, calls, failed_calls, unpriced_calls,
    input_tokens, output_tokens, cached_input_tokens, reasoning_tokens, cost
)
SELECT * FROM unnest(
    $1::text[], $2::date[], $3::text[], $4::text[], $5::text[], $6::text[],
    $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
    $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::numeric[]
)
ON CONFLICT ON CONSTRAINT statistics_calls_one_row DO UPDATE SET
    runs = known.runs + excluded.runs,
    calls = known.calls + excluded.calls,
    failed_calls = known.failed_calls + excluded.failed_calls,
    unpriced_calls = known.unpriced_calls + excluded.unpriced_calls,
    input_tokens = known.input_tokens + excluded.input_tokens,
    output_tokens = known.output_tokens + excluded.output_tokens,
    cached_input_tokens = known.cached_input_tokens + excluded.cached_input_tokens,
    reasoning_tokens = known.reasoning_tokens + excluded.reasoning_tokens,
    cost = known.cost + excluded.cost
