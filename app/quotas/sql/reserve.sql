INSERT INTO quota_reservations (run_id, tenant_id, agent)
SELECT run_id, $2, agent FROM unnest($1::uuid[], $3::text[]) AS admitted (run_id, agent)
ON CONFLICT (run_id) DO NOTHING
