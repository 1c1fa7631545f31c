-- The schema after every migration, written by `make schema`. A test keeps the two equal.

CREATE FUNCTION public.tracon_append(strict boolean, writer uuid, followed_streams uuid[], followed_versions bigint[], streams uuid[], versions bigint[], topics text[], states bytea[], tenants text[], OUT positions bigint[], OUT stamp timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF strict THEN
        PERFORM pg_advisory_xact_lock(7301, 1);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(7301, 1);
    END IF;

    IF EXISTS (
        SELECT FROM unnest(followed_streams, followed_versions) AS followed(stream, version)
         WHERE (SELECT e.originator_version FROM stored_events e
                 WHERE e.originator_id = followed.stream AND e.originator_version = followed.version) IS NULL
    ) THEN
        RAISE integrity_constraint_violation
            USING MESSAGE = 'an append skips a version', CONSTRAINT = 'stored_events_no_gap';
    END IF;

    stamp := clock_timestamp();
    WITH stored AS (
        INSERT INTO stored_events
               (originator_id, originator_version, topic, state, tenant_id, recorded_at, writer_id)
        SELECT new.stream, new.version, new.topic, new.state, new.tenant, stamp, writer
          FROM unnest(streams, versions, topics, states, tenants)
               WITH ORDINALITY AS new(stream, version, topic, state, tenant, place)
         ORDER BY new.place
        RETURNING notification_id
    )
    SELECT array_agg(notification_id ORDER BY notification_id) INTO positions FROM stored;
END $$;

CREATE FUNCTION public.tracon_append_apart(strict boolean, writer uuid, appends integer[], resent boolean[], streams uuid[], versions bigint[], topics text[], states bytea[], tenants text[]) RETURNS TABLE(stored_position bigint, stored_at timestamp with time zone, refused boolean)
    LANGUAGE plpgsql
    AS $$
DECLARE
    stamp timestamptz;
BEGIN
    IF strict THEN
        PERFORM pg_advisory_xact_lock(7301, 1);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(7301, 1);
    END IF;

    stamp := clock_timestamp();
    RETURN QUERY
    WITH compared AS MATERIALIZED (
        SELECT new.*, old.position, old.at,
               old.position IS NOT NULL AND NOT (new.resent AND old.ours) AS taken,
               CASE WHEN new.version > 1
                         AND new.version = min(new.version) OVER (PARTITION BY new.append, new.stream)
                    THEN (SELECT e.originator_version FROM stored_events e
                           WHERE e.originator_id = new.stream AND e.originator_version = new.version - 1) IS NULL
                    ELSE false
               END AS skips
          FROM unnest(appends, resent, streams, versions, topics, states, tenants)
               WITH ORDINALITY AS new(append, resent, stream, version, topic, state, tenant, place)
          LEFT JOIN LATERAL (
               SELECT e.notification_id AS position, e.recorded_at AS at,
                      e.writer_id IS NOT DISTINCT FROM writer AND e.topic = new.topic AND e.state = new.state AS ours
                 FROM stored_events e
                WHERE e.originator_id = new.stream AND e.originator_version = new.version
                LIMIT 1) AS old ON true
    ), judged AS (
        SELECT compared.*, bool_or(taken OR skips) OVER (PARTITION BY append) AS lost FROM compared
    ), stored AS (
        INSERT INTO stored_events
               (originator_id, originator_version, topic, state, tenant_id, recorded_at, writer_id)
        SELECT stream, version, topic, state, tenant, stamp, writer
          FROM judged
         WHERE NOT lost AND position IS NULL
         ORDER BY place
        RETURNING originator_id, originator_version, notification_id
    )
    SELECT CASE WHEN NOT judged.lost THEN coalesce(judged.position, stored.notification_id) END,
           CASE WHEN NOT judged.lost THEN coalesce(judged.at, stamp) END,
           judged.taken OR judged.skips
      FROM judged
      LEFT JOIN stored ON stored.originator_id = judged.stream AND stored.originator_version = judged.version
     ORDER BY judged.place;
END $$;

CREATE FUNCTION public.tracon_refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE restrict_violation USING MESSAGE = 'events are never changed or removed',
                                   TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END $$;

CREATE TABLE public.agent_definitions (
    tenant_id text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    definition text,
    changed_at timestamp with time zone NOT NULL,
    changed_by text
);

CREATE TABLE public.api_keys (
    key_id uuid NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL,
    prefix text NOT NULL,
    digest bytea NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT api_keys_some_scope CHECK ((cardinality(scopes) > 0)),
    CONSTRAINT api_keys_whole_digest CHECK ((octet_length(digest) = 32))
);

CREATE TABLE public.approvals (
    run_id uuid NOT NULL,
    tenant_id text NOT NULL,
    agent text NOT NULL,
    session_id text,
    state text NOT NULL,
    calls text NOT NULL,
    events bigint NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    settled_at timestamp with time zone,
    settled_by text,
    reason text,
    opened_run_id uuid
);

CREATE TABLE public.cancel_requests (
    run_id uuid NOT NULL,
    host_id text NOT NULL,
    reason text NOT NULL,
    requested_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.hosts (
    host_id text NOT NULL,
    live_runs integer NOT NULL,
    vouches boolean NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    seen_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.idempotency (
    stream_id uuid NOT NULL,
    tenant_id text NOT NULL,
    key text NOT NULL,
    state text NOT NULL,
    method text NOT NULL,
    path text NOT NULL,
    fingerprint text NOT NULL,
    form text NOT NULL,
    run_id uuid NOT NULL,
    settled_by uuid,
    status integer,
    reason text,
    by_operator boolean NOT NULL,
    events bigint NOT NULL,
    reserved_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone
);

CREATE TABLE public.job_queue (
    run_id uuid NOT NULL,
    lane text NOT NULL,
    priority integer NOT NULL,
    "position" bigint NOT NULL,
    agent text NOT NULL,
    max_attempts integer NOT NULL,
    queued_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    term bigint DEFAULT 0 NOT NULL,
    owner text,
    leased_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE public.jobs (
    run_id uuid NOT NULL,
    tenant_id text NOT NULL,
    agent text NOT NULL,
    lane text NOT NULL,
    priority integer NOT NULL,
    max_attempts integer NOT NULL,
    source text,
    batch_id uuid,
    item integer,
    schedule text,
    status text NOT NULL,
    error text,
    queued_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone
)
WITH (fillfactor='80');

CREATE TABLE public.leases (
    name text NOT NULL,
    owner text NOT NULL,
    epoch bigint NOT NULL,
    acquired_at timestamp with time zone NOT NULL,
    renewed_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT leases_epoch_counts_from_1 CHECK ((epoch > 0))
)
WITH (fillfactor='50');

CREATE TABLE public.notification_tracking (
    application_name text NOT NULL,
    notification_id bigint NOT NULL
);

CREATE TABLE public.provider_health (
    provider text NOT NULL,
    state text NOT NULL,
    detail text NOT NULL,
    took_s double precision NOT NULL,
    checked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.quota_reservations (
    run_id uuid NOT NULL,
    tenant_id text NOT NULL,
    agent text NOT NULL,
    reserved_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.run_heartbeats (
    run_id uuid NOT NULL,
    host_id text NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    claimed_by text,
    claimed_at timestamp with time zone,
    CONSTRAINT run_heartbeats_claim_is_whole CHECK (((claimed_by IS NULL) = (claimed_at IS NULL)))
)
WITH (fillfactor='50');

CREATE TABLE public.runs (
    run_id uuid NOT NULL,
    tenant_id text NOT NULL,
    kind text NOT NULL,
    agent text NOT NULL,
    status text NOT NULL,
    provider text,
    model_id text,
    session_id text,
    root_run_id uuid NOT NULL,
    parent_run_id uuid,
    depth integer NOT NULL,
    continued_from_run_id uuid,
    error text,
    error_type text,
    error_class text,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost numeric,
    currency text,
    events bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    continued_by_run_id uuid,
    continuation_blocked text,
    replay_of_run_id uuid,
    reported_cost numeric DEFAULT 0 NOT NULL,
    wait_over text
)
WITH (fillfactor='80');

CREATE TABLE public.schedules (
    schedule_id uuid NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL,
    definition text NOT NULL,
    paused boolean NOT NULL,
    next_due timestamp with time zone,
    last_due timestamp with time zone,
    last_run_id uuid,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public.statistics_agents (
    tenant_id text NOT NULL,
    day date NOT NULL,
    agent text NOT NULL,
    created bigint NOT NULL,
    started bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    ended_unstarted bigint NOT NULL,
    tool_calls bigint NOT NULL,
    failed_tool_calls bigint NOT NULL,
    unknown_tool_calls bigint NOT NULL,
    awaiting_approval bigint DEFAULT 0 NOT NULL,
    awaiting_input bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.statistics_calls (
    tenant_id text NOT NULL,
    day date NOT NULL,
    agent text NOT NULL,
    provider text NOT NULL,
    model_id text NOT NULL,
    currency text NOT NULL,
    runs bigint NOT NULL,
    calls bigint NOT NULL,
    failed_calls bigint NOT NULL,
    unpriced_calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost numeric NOT NULL
);

CREATE TABLE public.statistics_live_runs (
    run_id uuid NOT NULL,
    state text NOT NULL
);

CREATE TABLE public.statistics_reports (
    tenant_id text NOT NULL,
    day date NOT NULL,
    agent text NOT NULL,
    kind text NOT NULL,
    currency text NOT NULL,
    reports bigint NOT NULL,
    unknown bigint NOT NULL,
    amount numeric NOT NULL,
    counted numeric NOT NULL
);

CREATE TABLE public.stored_events (
    originator_id uuid NOT NULL,
    originator_version bigint NOT NULL,
    topic text NOT NULL,
    state bytea NOT NULL,
    notification_id bigint NOT NULL,
    tenant_id text DEFAULT 'default'::text NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    writer_id uuid,
    CONSTRAINT stored_events_version_not_negative CHECK ((originator_version >= 0))
);

CREATE SEQUENCE public.stored_events_notification_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.stored_events_notification_id_seq OWNED BY public.stored_events.notification_id;

CREATE TABLE public.tool_calls (
    run_id uuid NOT NULL,
    ordinal integer NOT NULL,
    tenant_id text NOT NULL,
    step integer NOT NULL,
    reply_sequence bigint NOT NULL,
    call_id text NOT NULL,
    tool text NOT NULL,
    state text NOT NULL,
    effect text,
    failure text,
    arguments text NOT NULL,
    output text,
    truncated boolean NOT NULL,
    call_key text,
    safe_to_repeat boolean NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    duration_ms bigint,
    resolved boolean DEFAULT false NOT NULL
);

CREATE TABLE public.workflow_definitions (
    tenant_id text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    definition text,
    changed_at timestamp with time zone NOT NULL,
    changed_by text
);

ALTER TABLE ONLY public.stored_events ALTER COLUMN notification_id SET DEFAULT nextval('public.stored_events_notification_id_seq'::regclass);

ALTER TABLE ONLY public.agent_definitions
    ADD CONSTRAINT agent_definitions_one_row PRIMARY KEY (tenant_id, name);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_one_prefix UNIQUE (prefix);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_one_row PRIMARY KEY (key_id);

ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_one_row PRIMARY KEY (run_id);

ALTER TABLE ONLY public.cancel_requests
    ADD CONSTRAINT cancel_requests_one_per_run PRIMARY KEY (run_id);

ALTER TABLE ONLY public.hosts
    ADD CONSTRAINT hosts_one_row PRIMARY KEY (host_id);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_one_row PRIMARY KEY (stream_id);

ALTER TABLE ONLY public.job_queue
    ADD CONSTRAINT job_queue_one_row PRIMARY KEY (run_id);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_one_row PRIMARY KEY (run_id);

ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_one_owner PRIMARY KEY (name);

ALTER TABLE ONLY public.notification_tracking
    ADD CONSTRAINT notification_tracking_one_position PRIMARY KEY (application_name);

ALTER TABLE ONLY public.provider_health
    ADD CONSTRAINT provider_health_one_row PRIMARY KEY (provider);

ALTER TABLE ONLY public.quota_reservations
    ADD CONSTRAINT quota_reservations_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY public.run_heartbeats
    ADD CONSTRAINT run_heartbeats_one_owner PRIMARY KEY (run_id);

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_one_row PRIMARY KEY (run_id);

ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_one_row PRIMARY KEY (schedule_id);

ALTER TABLE ONLY public.statistics_agents
    ADD CONSTRAINT statistics_agents_one_row PRIMARY KEY (tenant_id, day, agent);

ALTER TABLE ONLY public.statistics_calls
    ADD CONSTRAINT statistics_calls_one_row PRIMARY KEY (tenant_id, day, agent, provider, model_id, currency);

ALTER TABLE ONLY public.statistics_live_runs
    ADD CONSTRAINT statistics_live_runs_one_row PRIMARY KEY (run_id);

ALTER TABLE ONLY public.statistics_reports
    ADD CONSTRAINT statistics_reports_one_row PRIMARY KEY (tenant_id, day, agent, kind, currency);

ALTER TABLE ONLY public.stored_events
    ADD CONSTRAINT stored_events_one_writer PRIMARY KEY (originator_id, originator_version);

ALTER TABLE ONLY public.tool_calls
    ADD CONSTRAINT tool_calls_one_row PRIMARY KEY (run_id, ordinal);

ALTER TABLE ONLY public.workflow_definitions
    ADD CONSTRAINT workflow_definitions_one_row PRIMARY KEY (tenant_id, name);

CREATE INDEX api_keys_newest ON public.api_keys USING btree (tenant_id, created_at DESC, key_id DESC);

CREATE INDEX approvals_by_state ON public.approvals USING btree (tenant_id, state, requested_at DESC, run_id DESC);

CREATE INDEX approvals_expiring ON public.approvals USING btree (expires_at, run_id) WHERE (state = 'pending'::text);

CREATE INDEX approvals_newest ON public.approvals USING btree (tenant_id, requested_at DESC, run_id DESC);

CREATE INDEX cancel_requests_by_host ON public.cancel_requests USING btree (host_id);

CREATE INDEX idempotency_in_progress ON public.idempotency USING btree (tenant_id, reserved_at DESC, stream_id DESC) WHERE (state = 'in_progress'::text);

CREATE INDEX idempotency_newest ON public.idempotency USING btree (tenant_id, reserved_at DESC, stream_id DESC);

CREATE INDEX job_queue_order ON public.job_queue USING btree (lane, priority DESC, "position");

CREATE INDEX jobs_by_batch ON public.jobs USING btree (batch_id, item) WHERE (batch_id IS NOT NULL);

CREATE INDEX jobs_by_lane ON public.jobs USING btree (tenant_id, lane, queued_at DESC, run_id DESC);

CREATE INDEX jobs_by_schedule ON public.jobs USING btree (tenant_id, schedule, queued_at DESC, run_id DESC) WHERE (schedule IS NOT NULL);

CREATE INDEX jobs_by_status ON public.jobs USING btree (tenant_id, status, queued_at DESC, run_id DESC);

CREATE INDEX jobs_newest ON public.jobs USING btree (tenant_id, queued_at DESC, run_id DESC);

CREATE INDEX quota_reservations_by_tenant ON public.quota_reservations USING btree (tenant_id);

CREATE INDEX runs_below ON public.runs USING btree (root_run_id, depth, created_at, run_id) WHERE (parent_run_id IS NOT NULL);

CREATE INDEX runs_by_agent ON public.runs USING btree (tenant_id, agent, created_at DESC, run_id DESC);

CREATE INDEX runs_by_model ON public.runs USING btree (tenant_id, model_id, created_at DESC, run_id DESC);

CREATE INDEX runs_by_session ON public.runs USING btree (tenant_id, md5(session_id), created_at DESC, run_id DESC) WHERE (session_id IS NOT NULL);

CREATE INDEX runs_by_status ON public.runs USING btree (tenant_id, status, created_at DESC, run_id DESC);

CREATE INDEX runs_newest ON public.runs USING btree (tenant_id, created_at DESC, run_id DESC);

CREATE INDEX runs_running ON public.runs USING btree (started_at, run_id) WHERE (status = 'Running'::text);

CREATE INDEX runs_waiting ON public.runs USING btree (created_at, run_id) WHERE (status = 'Queued'::text);

CREATE INDEX schedules_by_name ON public.schedules USING btree (tenant_id, name);

CREATE INDEX schedules_due ON public.schedules USING btree (next_due) WHERE (NOT paused);

CREATE UNIQUE INDEX stored_events_notification_id_idx ON public.stored_events USING btree (notification_id);

CREATE INDEX tool_calls_by_tool ON public.tool_calls USING btree (tenant_id, md5(tool), requested_at DESC, run_id DESC, ordinal DESC) WHERE (state <> 'requested'::text);

CREATE INDEX tool_calls_newest ON public.tool_calls USING btree (tenant_id, requested_at DESC, run_id DESC, ordinal DESC) WHERE (state <> 'requested'::text);

CREATE INDEX tool_calls_not_returned ON public.tool_calls USING btree (tenant_id, state, requested_at DESC, run_id DESC, ordinal DESC) WHERE (state <> ALL (ARRAY['requested'::text, 'returned'::text]));

CREATE TRIGGER stored_events_append_only BEFORE DELETE OR UPDATE ON public.stored_events FOR EACH STATEMENT EXECUTE FUNCTION public.tracon_refuse_change();
