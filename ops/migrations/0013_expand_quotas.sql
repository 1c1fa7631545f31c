-- Runs that were admitted under a quota and may not be in the log, or in the statistics, yet: claims, not facts.
CREATE TABLE quota_reservations (
    run_id uuid PRIMARY KEY,
    tenant_id text NOT NULL,
    agent text NOT NULL,
    reserved_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX quota_reservations_by_tenant ON quota_reservations (tenant_id);
