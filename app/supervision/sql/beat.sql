-- A host is here, and answers for these live runs; those that ended are no longer its business. The answer is the runs
-- that are not this host's any more: somebody found them silent and is closing them.
--
-- $1 the host, $2 how many runs are live on it, $3 runs it answers for, $4 runs that ended, $5 whether it vouches at all.
WITH host AS (
    INSERT INTO hosts AS known (host_id, live_runs, vouches, seen_at)
    VALUES ($1, $2, $5, clock_timestamp())
        ON CONFLICT (host_id) DO UPDATE SET live_runs = excluded.live_runs, seen_at = excluded.seen_at
), vouched AS (
    INSERT INTO run_heartbeats AS known (run_id, host_id, seen_at)
    SELECT live.run_id, $1, clock_timestamp()
      FROM unnest($3::uuid[]) AS live(run_id)
     ORDER BY live.run_id
        ON CONFLICT (run_id) DO UPDATE SET seen_at = excluded.seen_at
     WHERE known.host_id = excluded.host_id AND known.claimed_by IS NULL
    RETURNING known.run_id
), left_alone AS (
    DELETE FROM run_heartbeats AS known
     USING unnest($4::uuid[]) AS ended(run_id)
     WHERE known.run_id = ended.run_id AND known.host_id = $1 AND known.claimed_by IS NULL
)
SELECT live.run_id
  FROM unnest($3::uuid[]) AS live(run_id)
 WHERE NOT EXISTS (SELECT FROM vouched WHERE vouched.run_id = live.run_id)
