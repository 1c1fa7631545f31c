-- How much the tenant ($1) has used of each quota (its agent or null in $2, its metric in $3, its period in $4),
-- the day that it is, and how far the statistics have come: all as of one snapshot. A run that was admitted
-- counts from its reservation on, until the statistics have it or it turns out that it never began.
WITH place AS (
    SELECT COALESCE((SELECT notification_id FROM notification_tracking WHERE application_name = 'statistics'), 0)
           AS position
), today AS (
    SELECT (now() AT TIME ZONE 'UTC')::date AS day
), expected AS (
    SELECT reserved.agent, (reserved.reserved_at AT TIME ZONE 'UTC')::date AS day
    FROM quota_reservations reserved
    LEFT JOIN stored_events created
        ON created.originator_id = reserved.run_id AND created.originator_version = 1
    WHERE reserved.tenant_id = $1
      AND CASE WHEN created.notification_id IS NULL THEN reserved.reserved_at > now() - $6::interval
               ELSE created.notification_id > (SELECT position FROM place) END
), quotas AS (
    SELECT asked.number, asked.agent, asked.metric,
           CASE asked.period WHEN 'month' THEN date_trunc('month', today.day)::date ELSE today.day END AS since
    FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS asked (agent, metric, period, number), today
)
SELECT
    today.day,
    now() AS now,
    place.position,
    CASE quotas.metric
        WHEN 'runs' THEN
            (SELECT COALESCE(SUM(created), 0) FROM statistics_agents
             WHERE tenant_id = $1 AND day >= quotas.since AND (quotas.agent IS NULL OR agent = quotas.agent))
            + (SELECT COUNT(*) FROM expected
               WHERE day >= quotas.since AND (quotas.agent IS NULL OR agent = quotas.agent))
        WHEN 'tokens' THEN
            (SELECT COALESCE(SUM(input_tokens + output_tokens), 0) FROM statistics_calls
             WHERE tenant_id = $1 AND day >= quotas.since AND (quotas.agent IS NULL OR agent = quotas.agent))
        ELSE
            (SELECT COALESCE(SUM(cost), 0) FROM statistics_calls
             WHERE tenant_id = $1 AND day >= quotas.since AND (quotas.agent IS NULL OR agent = quotas.agent)
               AND currency = $5)
            + (SELECT COALESCE(SUM(counted), 0) FROM statistics_reports
               WHERE tenant_id = $1 AND day >= quotas.since AND (quotas.agent IS NULL OR agent = quotas.agent)
                 AND currency = $5)
    END AS used
FROM quotas, today, place
ORDER BY quotas.number
