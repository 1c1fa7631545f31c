-- What agents' tools and nodes reported, by kind and currency.
SELECT agent, kind, currency,
       sum(reports)::bigint AS reports,
       sum(unknown)::bigint AS unknown,
       sum(amount) AS amount,
       sum(counted) AS counted
  FROM statistics_reports
 WHERE tenant_id = $1
   AND ($2::date IS NULL OR day >= $2)
   AND ($3::date IS NULL OR day < $3)
 GROUP BY agent, kind, currency
 ORDER BY agent, kind, currency
