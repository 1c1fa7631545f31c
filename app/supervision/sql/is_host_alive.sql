-- Whether a host was heard of within so many seconds.
SELECT EXISTS (
    SELECT FROM hosts WHERE host_id = $1 AND seen_at >= clock_timestamp() - make_interval(secs => $2))
