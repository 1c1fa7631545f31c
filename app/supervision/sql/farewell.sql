-- A host stops, and nothing works on these runs of its any more: whoever scans next need not wait for their silence.
WITH gone AS (
    DELETE FROM hosts WHERE host_id = $1
), given_up AS (
    UPDATE run_heartbeats SET seen_at = '-infinity' WHERE host_id = $1
    RETURNING run_id
)
INSERT INTO run_heartbeats AS known (run_id, host_id, seen_at)
SELECT cut.run_id, $1, '-infinity'
  FROM unnest($2::uuid[]) AS cut(run_id)
 WHERE NOT EXISTS (SELECT FROM run_heartbeats AS had WHERE had.run_id = cut.run_id)
    ON CONFLICT (run_id) DO NOTHING
