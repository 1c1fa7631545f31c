-- ops/migrations/0004_expand_jobs.sql
-- Queued runs, and schedules.
--
-- `jobs` and `schedules` are views of the log like those before them: derived from events, dropped and rebuilt at will.
--
-- `job_queue` is the work list. It has a row for each job that is open, made from the same events; but its last four
-- columns are claims, which no event tells: who works on the job, in which term, and until when. So the `jobs`
-- projection adds rows that are missing and removes those of jobs that ended, and never writes a row that is there.
-- A rebuild therefore neither loses a claim nor waits for one. Nothing may refer to these rows.

CREATE TABLE jobs (
    run_id       uuid        NOT NULL,
    tenant_id    text        NOT NULL,
    agent        text        NOT NULL,
    lane         text        NOT NULL,
    priority     integer     NOT NULL,
    max_attempts integer     NOT NULL,
    -- What the job belongs to, as JSON; and the parts of it that lists are filtered by.
    source       text,
    batch_id     uuid,
    item         integer,
    schedule     text,
    status       text        NOT NULL,
    error        text,
    queued_at    timestamptz NOT NULL,
    started_at   timestamptz,
    ended_at     timestamptz,

    CONSTRAINT jobs_one_row PRIMARY KEY (run_id)
) WITH (fillfactor = 80);

CREATE INDEX jobs_newest ON jobs (tenant_id, queued_at DESC, run_id DESC);
CREATE INDEX jobs_by_status ON jobs (tenant_id, status, queued_at DESC, run_id DESC);
CREATE INDEX jobs_by_lane ON jobs (tenant_id, lane, queued_at DESC, run_id DESC);
CREATE INDEX jobs_by_batch ON jobs (batch_id, item) WHERE batch_id IS NOT NULL;
CREATE INDEX jobs_by_schedule ON jobs (tenant_id, schedule, queued_at DESC, run_id DESC) WHERE schedule IS NOT NULL;

CREATE TABLE job_queue (
    run_id       uuid        NOT NULL,
    lane         text        NOT NULL,
    priority     integer     NOT NULL,
    -- The log position of the submission: within a lane and a priority, first come, first served.
    position     bigint      NOT NULL,
    agent        text        NOT NULL,
    max_attempts integer     NOT NULL,
    queued_at    timestamptz NOT NULL,

    -- How often it was leased. A job that ran to its end was leased once, as a rule.
    attempts     integer     NOT NULL DEFAULT 0,
    -- Grows with each lease: a write of a holder who is none any more names a term that has passed.
    term         bigint      NOT NULL DEFAULT 0,
    owner        text,
    leased_until timestamptz NOT NULL DEFAULT '-infinity',

    CONSTRAINT job_queue_one_row PRIMARY KEY (run_id)
) WITH (fillfactor = 70); -- leases are renewed in place: leave room for it

CREATE INDEX job_queue_order ON job_queue (lane, priority DESC, position);

CREATE TABLE schedules (
    schedule_id uuid        NOT NULL,
    tenant_id   text        NOT NULL,
    name        text        NOT NULL,
    -- JSON. It is text, since jsonb would refuse some of what a message may hold.
    definition  text        NOT NULL,
    paused      boolean     NOT NULL,
    next_due    timestamptz,
    last_due    timestamptz,
    last_run_id uuid,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,

    CONSTRAINT schedules_one_row PRIMARY KEY (schedule_id)
);

CREATE INDEX schedules_by_name ON schedules (tenant_id, name);
CREATE INDEX schedules_due ON schedules (next_due) WHERE NOT paused;
