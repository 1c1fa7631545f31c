-- ops/migrations/0014_expand_workflows.sql
-- The last version of each workflow that was defined over HTTP. A removed one keeps its row: its versions go on counting.

CREATE TABLE workflow_definitions (
    tenant_id  text        NOT NULL,
    name       text        NOT NULL,
    version    bigint      NOT NULL,
    -- Null: removed.
    definition text,
    changed_at timestamptz NOT NULL,
    changed_by text,

    CONSTRAINT workflow_definitions_one_row PRIMARY KEY (tenant_id, name)
);
