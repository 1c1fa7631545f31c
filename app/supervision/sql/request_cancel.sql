-- Leave word for a run's owner and ring for it. Whoever asks again asks for the same. No row: the run is being closed,
-- because it was silent. Whoever closes it has read by then what was left for it, so nobody would read this any more;
-- the lock has a claim and a word that come at the same moment take turns.
--
-- $1 the run, $2 its owner, $3 why, $4 the channel.
WITH claimed AS (
    SELECT claimed_by IS NOT NULL AS taken FROM run_heartbeats WHERE run_id = $1 FOR SHARE
), asked AS (
    INSERT INTO cancel_requests (run_id, host_id, reason)
    SELECT $1, $2, $3
     WHERE NOT EXISTS (SELECT FROM claimed WHERE taken)
        ON CONFLICT (run_id) DO UPDATE SET host_id = excluded.host_id
    RETURNING host_id
)
SELECT pg_notify($4, host_id) FROM asked
