-- What all hosts together say of themselves, to be held against what the log says. A run that waits for its session is in
-- a host without running, and has a heartbeat there.
--
-- $1 seconds of silence after which a host, or a run, is not counted on.
WITH lately AS (
    SELECT clock_timestamp() - make_interval(secs => $1) AS since
)
SELECT (SELECT count(*) FROM runs WHERE status = 'Running') AS running,
       (SELECT count(*) FROM run_heartbeats AS known JOIN runs AS run USING (run_id)
         WHERE run.status = 'Queued') AS waiting,
       (SELECT coalesce(sum(live_runs), 0)::bigint FROM hosts, lately WHERE seen_at >= since) AS live,
       (SELECT count(*) FROM hosts, lately WHERE seen_at >= since) AS hosts,
       (SELECT count(*) FROM run_heartbeats, lately WHERE seen_at < since) AS silent,
       (SELECT count(*) FROM cancel_requests) AS cancels,
       (SELECT coalesce(json_object_agg(name, extract(epoch FROM clock_timestamp() - renewed_at)), '{}')
          FROM leases) AS lease_ages
