INSERT INTO statistics_live_runs (run_id, state)
SELECT * FROM unnest($1::uuid[], $2::text[])
ON CONFLICT (run_id) DO UPDATE SET state = excluded.state
