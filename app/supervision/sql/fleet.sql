-- What all hosts together say of themselves, to be held against what the log says.
SELECT (SELECT count(*) FROM runs WHERE status = 'Running') AS running,
       (SELECT coalesce(sum(live_runs), 0)::bigint FROM hosts
         WHERE seen_at >= clock_timestamp() - make_interval(secs => $1)) AS live,
       (SELECT count(*) FROM hosts WHERE seen_at >= clock_timestamp() - make_interval(secs => $1)) AS hosts,
       (SELECT count(*) FROM run_heartbeats
         WHERE seen_at < clock_timestamp() - make_interval(secs => $1)) AS silent,
       (SELECT coalesce(json_object_agg(name, extract(epoch FROM clock_timestamp() - renewed_at)), '{}')
          FROM leases) AS lease_ages
