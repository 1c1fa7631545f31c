-- Reports of one page, added to those of earlier pages.
INSERT INTO statistics_reports AS known (
    tenant_id, day, agent, kind, currency, reports, unknown, amount, counted
)
SELECT * FROM unnest(
    $1::text[], $2::date[], $3::text[], $4::text[], $5::text[],
    $6::bigint[], $7::bigint[], $8::numeric[], $9::numeric[]
)
ON CONFLICT ON CONSTRAINT statistics_reports_one_row DO UPDATE SET
    reports = known.reports + excluded.reports,
    unknown = known.unknown + excluded.unknown,
    amount = known.amount + excluded.amount,
    counted = known.counted + excluded.counted
