-- Hosts that have been silent for so long are of no interest to anybody.
DELETE FROM hosts WHERE seen_at < clock_timestamp() - make_interval(secs => $1)
