-- Take runs that nobody vouches for, each with the host that began it.
INSERT INTO run_heartbeats (run_id, host_id, seen_at, claimed_by, claimed_at)
SELECT silent.run_id, silent.host_id, '-infinity', $1, clock_timestamp()
  FROM unnest($2::uuid[], $3::text[]) AS silent(run_id, host_id)
    ON CONFLICT (run_id) DO NOTHING
RETURNING run_id
