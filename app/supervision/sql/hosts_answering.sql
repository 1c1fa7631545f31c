-- Hosts that answer for their runs by being there: heard of within so many seconds, and writing no heartbeats for runs.
SELECT host_id FROM hosts WHERE NOT vouches AND seen_at >= clock_timestamp() - make_interval(secs => $1)
