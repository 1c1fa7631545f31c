-- These runs are closed, or their owner has shown that it lives: nothing of the claim is left.
DELETE FROM run_heartbeats WHERE run_id = ANY ($1::uuid[]) AND claimed_by = $2
