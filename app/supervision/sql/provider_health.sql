-- What was seen last of each provider, and how long ago.
SELECT provider, state, detail, took_s, checked_at,
       extract(epoch FROM clock_timestamp() - checked_at)::float8 AS age_s
  FROM provider_health
 WHERE provider = ANY ($1::text[])
