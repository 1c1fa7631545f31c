-- One row for each model and currency (agent is null), and one for each agent and currency (provider is null).
SELECT agent, provider, model_id, currency,
       sum(runs)::bigint AS runs,
       sum(calls)::bigint AS calls,
       sum(failed_calls)::bigint AS failed_calls,
       sum(unpriced_calls)::bigint AS unpriced_calls,
       sum(input_tokens)::bigint AS input_tokens,
       sum(output_tokens)::bigint AS output_tokens,
       sum(cached_input_tokens)::bigint AS cached_input_tokens,
       sum(reasoning_tokens)::bigint AS reasoning_tokens,
       sum(cost) AS cost
  FROM statistics_calls
 WHERE tenant_id = $1
   AND ($2::date IS NULL OR day >= $2)
   AND ($3::date IS NULL OR day < $3)
 GROUP BY GROUPING SETS ((provider, model_id, currency), (agent, currency))
 ORDER BY provider, model_id, agent, currency
