-- ops/migrations/0011_expand_approvals.sql
-- Runs that wait for a person, what they wait for and what came of it; and agents that were defined over HTTP.

ALTER TABLE runs
    -- Of a run that waits: why nobody's word will come any more.
    ADD COLUMN wait_over text;

ALTER TABLE statistics_agents
    ADD COLUMN awaiting_approval bigint NOT NULL DEFAULT 0,
    ADD COLUMN awaiting_input    bigint NOT NULL DEFAULT 0;

-- An approval has the id of the run that waits for it.
CREATE TABLE approvals (
    run_id        uuid        NOT NULL,
    tenant_id     text        NOT NULL,
    agent         text        NOT NULL,
    session_id    text,
    state         text        NOT NULL,
    -- The calls, with what was decided of each: JSON.
    calls         text        NOT NULL,
    events        bigint      NOT NULL,
    requested_at  timestamptz NOT NULL,
    -- Null: it never expires.
    expires_at    timestamptz,
    settled_at    timestamptz,
    -- The API key of who settled it; null for a client without one, and for the clock.
    settled_by    text,
    reason        text,
    -- The run that the decision opened.
    opened_run_id uuid,

    CONSTRAINT approvals_one_row PRIMARY KEY (run_id)
);

CREATE INDEX approvals_newest ON approvals (tenant_id, requested_at DESC, run_id DESC);
CREATE INDEX approvals_by_state ON approvals (tenant_id, state, requested_at DESC, run_id DESC);
CREATE INDEX approvals_expiring ON approvals (expires_at, run_id) WHERE state = 'pending';

-- The last version of each agent that was defined over HTTP. A removed one keeps its row: its versions go on counting.
CREATE TABLE agent_definitions (
    tenant_id  text        NOT NULL,
    name       text        NOT NULL,
    version    bigint      NOT NULL,
    -- Null: removed.
    definition text,
    changed_at timestamptz NOT NULL,
    changed_by text,

    CONSTRAINT agent_definitions_one_row PRIMARY KEY (tenant_id, name)
);
