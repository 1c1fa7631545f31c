-- ops/migrations/0008_expand_idempotency.sql
-- The `idempotency` view: what each key stands for, for operators. No request is admitted by it: that is decided on
-- the key's own events, which are never behind.

CREATE TABLE idempotency (
    stream_id    uuid        NOT NULL,
    tenant_id    text        NOT NULL,
    key          text        NOT NULL,
    state        text        NOT NULL,
    method       text        NOT NULL,
    path         text        NOT NULL,
    fingerprint  text        NOT NULL,
    form         text        NOT NULL,
    -- The run that the key was reserved with, and the one that it was settled by.
    run_id       uuid        NOT NULL,
    settled_by   uuid,
    -- Of the answer that is kept.
    status       integer,
    -- Why it was released.
    reason       text,
    by_operator  boolean     NOT NULL,
    events       bigint      NOT NULL,
    reserved_at  timestamptz NOT NULL,
    settled_at   timestamptz,

    CONSTRAINT idempotency_one_row PRIMARY KEY (stream_id)
);

CREATE INDEX idempotency_newest ON idempotency (tenant_id, reserved_at DESC, stream_id DESC);
-- The few that somebody may have to look into, and that the sweep goes through.
CREATE INDEX idempotency_in_progress ON idempotency (tenant_id, reserved_at DESC, stream_id DESC)
    WHERE state = 'in_progress';
