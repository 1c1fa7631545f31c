-- What a tree has come to, in all of its runs. Costs are one row for each currency; a null one is of unknown price.
SELECT currency,
       count(*) AS runs,
       count(*) FILTER (WHERE ended_at IS NULL) AS live,
       count(*) FILTER (WHERE cost IS NULL) AS unpriced,
       sum(input_tokens)::bigint AS input_tokens,
       sum(output_tokens)::bigint AS output_tokens,
       sum(cached_input_tokens)::bigint AS cached_input_tokens,
       sum(reasoning_tokens)::bigint AS reasoning_tokens,
       coalesce(sum(cost), 0) AS cost,
       sum(reported_cost) AS reported_cost
  FROM (SELECT * FROM runs WHERE tenant_id = $1 AND run_id = $2
        UNION ALL
        SELECT * FROM runs WHERE tenant_id = $1 AND root_run_id = $2 AND parent_run_id IS NOT NULL) AS tree
 GROUP BY currency
 ORDER BY currency
