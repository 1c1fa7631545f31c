-- ops/migrations/0005_expand_hosts.sql
-- Which hosts there are, which runs each of them answers for, who does the periodic work, and which runs are to be
-- told to stop. These are claims, not facts: they run out by themselves, and losing all of them loses no run. Every
-- time in here is the database's, because it is compared with the database's.

CREATE TABLE hosts (
    host_id    text        NOT NULL,
    -- What the host counts, to be held against what the log says is running.
    live_runs  integer     NOT NULL,
    -- Whether it writes heartbeats for its runs; one that does not answers for them by being there.
    vouches    boolean     NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at    timestamptz NOT NULL,

    CONSTRAINT hosts_one_row PRIMARY KEY (host_id)
) WITH (fillfactor = 50);

-- One row for each live run. There is no index on its times, although the scan compares them: every beat writes every
-- row, and without that index the new version stays on its page. The table is as small as the number of live runs.
CREATE TABLE run_heartbeats (
    run_id     uuid        NOT NULL,
    host_id    text        NOT NULL,
    -- '-infinity': the host has given the run up.
    seen_at    timestamptz NOT NULL,
    -- Who is closing the run, because it was silent. A claim that was not made good runs out.
    claimed_by text,
    claimed_at timestamptz,

    CONSTRAINT run_heartbeats_one_owner PRIMARY KEY (run_id),
    CONSTRAINT run_heartbeats_claim_is_whole CHECK ((claimed_by IS NULL) = (claimed_at IS NULL))
) WITH (fillfactor = 50);

-- Work that one host of all does. An epoch is one term of one owner; it never comes again.
CREATE TABLE leases (
    name        text        NOT NULL,
    owner       text        NOT NULL,
    epoch       bigint      NOT NULL,
    acquired_at timestamptz NOT NULL,
    renewed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,

    CONSTRAINT leases_one_owner PRIMARY KEY (name),
    CONSTRAINT leases_epoch_counts_from_1 CHECK (epoch > 0)
) WITH (fillfactor = 50);

-- Runs that live on another host than the one that was asked to stop them.
CREATE TABLE cancel_requests (
    run_id       uuid        NOT NULL,
    host_id      text        NOT NULL,
    reason       text        NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT cancel_requests_one_per_run PRIMARY KEY (run_id)
);

CREATE INDEX cancel_requests_by_host ON cancel_requests (host_id);

-- What whoever looked last saw of a provider.
CREATE TABLE provider_health (
    provider   text             NOT NULL,
    state      text             NOT NULL,
    detail     text             NOT NULL,
    took_s     double precision NOT NULL,
    checked_at timestamptz      NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT provider_health_one_row PRIMARY KEY (provider)
);

-- What the log says is running, oldest first: the runs of hosts that died before they could vouch for them.
CREATE INDEX runs_running ON runs (started_at, run_id) WHERE status = 'Running';
