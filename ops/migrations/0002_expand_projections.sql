-- ops/migrations/0002_expand_projections.sql
-- The first views of the log: `runs`, `tools` and `statistics`. Every row here can be derived again from the
-- events, so nothing else may write to these tables, and no foreign key ties one view to another.
--
-- Text that callers and models choose (session ids, tool names) has no limit, while an index entry has one: those
-- are indexed by their hash, and a query compares both the hash and the text.

CREATE TABLE runs (
    run_id                uuid        NOT NULL,
    tenant_id             text        NOT NULL,
    kind                  text        NOT NULL,
    agent                 text        NOT NULL,
    status                text        NOT NULL,
    provider              text,
    model_id              text,
    session_id            text,
    root_run_id           uuid        NOT NULL,
    parent_run_id         uuid,
    depth                 integer     NOT NULL,
    continued_from_run_id uuid,
    error                 text,
    error_type            text,
    error_class           text,
    input_tokens          bigint      NOT NULL,
    output_tokens         bigint      NOT NULL,
    cached_input_tokens   bigint      NOT NULL,
    reasoning_tokens      bigint      NOT NULL,
    -- Null: unknown.
    cost                  numeric,
    currency              text,
    events                bigint      NOT NULL,
    created_at            timestamptz NOT NULL,
    started_at            timestamptz,
    ended_at              timestamptz,

    CONSTRAINT runs_one_row PRIMARY KEY (run_id)
) WITH (fillfactor = 80); -- a live run's row is written again and again: leave room for it on its page

-- Lists are of one tenant, newest first. The run id makes the order total.
CREATE INDEX runs_newest ON runs (tenant_id, created_at DESC, run_id DESC);
CREATE INDEX runs_by_status ON runs (tenant_id, status, created_at DESC, run_id DESC);
CREATE INDEX runs_by_agent ON runs (tenant_id, agent, created_at DESC, run_id DESC);
CREATE INDEX runs_by_model ON runs (tenant_id, model_id, created_at DESC, run_id DESC);
CREATE INDEX runs_by_session ON runs (tenant_id, md5(session_id), created_at DESC, run_id DESC)
    WHERE session_id IS NOT NULL;

CREATE TABLE tool_calls (
    run_id          uuid        NOT NULL,
    ordinal         integer     NOT NULL,
    tenant_id       text        NOT NULL,
    step            integer     NOT NULL,
    reply_sequence  bigint      NOT NULL,
    call_id         text        NOT NULL,
    tool            text        NOT NULL,
    -- `requested` rows are the view's own: what a model asked for and has not started.
    state           text        NOT NULL,
    effect          text,
    failure         text,
    arguments       text        NOT NULL,
    output          text,
    truncated       boolean     NOT NULL,
    call_key        text,
    safe_to_repeat  boolean     NOT NULL,
    requested_at    timestamptz NOT NULL,
    started_at      timestamptz,
    ended_at        timestamptz,
    duration_ms     bigint,

    CONSTRAINT tool_calls_one_row PRIMARY KEY (run_id, ordinal)
);

CREATE INDEX tool_calls_newest ON tool_calls (tenant_id, requested_at DESC, run_id DESC, ordinal DESC)
    WHERE state <> 'requested';
CREATE INDEX tool_calls_by_tool ON tool_calls
    (tenant_id, md5(tool), requested_at DESC, run_id DESC, ordinal DESC) WHERE state <> 'requested';
-- Most calls return; these are the ones that somebody looks for.
CREATE INDEX tool_calls_not_returned ON tool_calls
    (tenant_id, state, requested_at DESC, run_id DESC, ordinal DESC) WHERE state NOT IN ('requested', 'returned');

-- Model calls, in buckets of the UTC day on which they came back. `currency` is '' for calls without a price.
CREATE TABLE statistics_calls (
    tenant_id           text    NOT NULL,
    day                 date    NOT NULL,
    agent               text    NOT NULL,
    provider            text    NOT NULL,
    model_id            text    NOT NULL,
    currency            text    NOT NULL,
    runs                bigint  NOT NULL,
    calls               bigint  NOT NULL,
    failed_calls        bigint  NOT NULL,
    unpriced_calls      bigint  NOT NULL,
    input_tokens        bigint  NOT NULL,
    output_tokens       bigint  NOT NULL,
    cached_input_tokens bigint  NOT NULL,
    reasoning_tokens    bigint  NOT NULL,
    cost                numeric NOT NULL,

    CONSTRAINT statistics_calls_one_row PRIMARY KEY (tenant_id, day, agent, provider, model_id, currency)
);

-- Runs, in buckets of the UTC day on which they were created; tool calls, of the day on which they ended.
CREATE TABLE statistics_agents (
    tenant_id          text   NOT NULL,
    day                date   NOT NULL,
    agent              text   NOT NULL,
    created            bigint NOT NULL,
    started            bigint NOT NULL,
    completed          bigint NOT NULL,
    failed             bigint NOT NULL,
    cancelled          bigint NOT NULL,
    ended_unstarted    bigint NOT NULL,
    tool_calls         bigint NOT NULL,
    failed_tool_calls  bigint NOT NULL,
    unknown_tool_calls bigint NOT NULL,

    CONSTRAINT statistics_agents_one_row PRIMARY KEY (tenant_id, day, agent)
);

-- What the counting of a run's later events needs to know of its earlier ones, while it lives.
CREATE TABLE statistics_live_runs (
    run_id uuid NOT NULL,
    state  text NOT NULL,

    CONSTRAINT statistics_live_runs_one_row PRIMARY KEY (run_id)
);
