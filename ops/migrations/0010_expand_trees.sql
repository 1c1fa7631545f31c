-- ops/migrations/0010_expand_trees.sql
-- Trees of runs, as their root's page shows them, and what tools and nodes said they have spent beyond tokens.

-- Roots are found by their own id; only what is below them needs another way.
CREATE INDEX runs_below ON runs (root_run_id, depth, created_at, run_id) WHERE parent_run_id IS NOT NULL;

ALTER TABLE runs
    -- Of what was reported, that which counts as cost: in the currency that prices are set in.
    ADD COLUMN reported_cost numeric NOT NULL DEFAULT 0;

-- On the UTC day of the report. An empty currency: the report named none.
CREATE TABLE statistics_reports (
    tenant_id text    NOT NULL,
    day       date    NOT NULL,
    agent     text    NOT NULL,
    kind      text    NOT NULL,
    currency  text    NOT NULL,
    reports   bigint  NOT NULL,
    unknown   bigint  NOT NULL,
    amount    numeric NOT NULL,
    counted   numeric NOT NULL,

    CONSTRAINT statistics_reports_one_row PRIMARY KEY (tenant_id, day, agent, kind, currency)
);
