-- ops/migrations/0009_expand_waiting_runs.sql
-- Runs that wait, oldest first: among those that no worker will ever take are the ones whose host died before it could
-- vouch for them.

CREATE INDEX runs_waiting ON runs (created_at, run_id) WHERE status = 'Queued';
