-- Runs that were silent for too long, taken for closing. Only the database's clock counts, and of two that claim at the
-- same time each run falls to one. A claim runs out like a heartbeat; what is left of this host's own, from a scan that
-- did not come to its end, is taken up once in each scan, after what is new. A host does not judge its own runs.
--
-- $1 the claiming host, $2 seconds of silence, $3 seconds that a claim lasts, $4 when this scan began, $5 how many.
UPDATE run_heartbeats AS claimed
   SET claimed_by = $1, claimed_at = clock_timestamp()
 WHERE claimed.run_id IN (
       SELECT silent.run_id
         FROM run_heartbeats AS silent
        WHERE silent.seen_at < clock_timestamp() - make_interval(secs => $2)
          AND (silent.claimed_at IS NULL
               OR silent.claimed_at < CASE silent.claimed_by WHEN $1 THEN $4::timestamptz
                                      ELSE clock_timestamp() - make_interval(secs => $3) END)
          AND silent.host_id <> $1
        ORDER BY silent.claimed_at NULLS FIRST, silent.seen_at, silent.run_id
        LIMIT $5
          FOR UPDATE SKIP LOCKED)
RETURNING claimed.run_id, claimed.host_id, isfinite(claimed.seen_at) AS silent
