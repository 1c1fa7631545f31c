-- ops/migrations/0001_expand_event_log.sql
-- The log. Rows are written once and never changed.
--
-- The first five columns are those of the `eventsourcing` library's Postgres recorder, under its names, so that the
-- library's own recorders, notification log and projections can follow and audit this log from another process. It
-- picks columns by name, so the further ones do not disturb it.
--
-- A notification id is drawn before its transaction commits, so ids become visible out of order and a rolled-back
-- append leaves a hole. A reader that simply remembers the highest id it saw would lose events. What makes the order
-- safe is that every append holds advisory lock (7301, 1) from before its first id until its commit is visible: see
-- app/store/holes.py. Two things must therefore stay as they are: the sequence caches no ids, and nothing but these
-- functions (or the library, whose table lock has the same effect) inserts here.

CREATE TABLE stored_events (
    originator_id      uuid        NOT NULL,
    originator_version bigint      NOT NULL,
    topic              text        NOT NULL,
    state              bytea       NOT NULL,
    notification_id    bigserial   NOT NULL,
    tenant_id          text        NOT NULL DEFAULT 'default',
    -- One clock for the whole log: the database's.
    recorded_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The writer that sent the row. It recognises by it what it wrote itself when a broken connection swallowed the answer.
    writer_id          uuid,

    -- Optimistic concurrency and fencing live here: two writers cannot both own a version of a stream.
    CONSTRAINT stored_events_one_writer PRIMARY KEY (originator_id, originator_version),
    -- Tracon counts from 1. The library lets its users choose, and its contract has somebody choose 0.
    CONSTRAINT stored_events_version_not_negative CHECK (originator_version >= 0)
);

CREATE UNIQUE INDEX stored_events_notification_id_idx ON stored_events (notification_id ASC);

-- How far each follower of the log has come; it moves in the transaction that changes the follower's own rows.
CREATE TABLE notification_tracking (
    application_name text   NOT NULL,
    notification_id  bigint NOT NULL,

    CONSTRAINT notification_tracking_one_position PRIMARY KEY (application_name)
);

-- The library takes a tracking table without this row for its older layout, and would rename it away.
INSERT INTO notification_tracking (application_name, notification_id) VALUES ('__migration__', 1);

-- Append the changes of many streams in one statement: one implicit transaction, one round trip, one flush of the WAL.
--
-- The lock is a flag that an append is in flight. Shared, it makes nobody wait. `strict` takes it exclusively: appends
-- then commit in the order of their ids, one at a time on the whole cluster, for readers that know nothing of holes.
--
-- `followed_*` name the row that each change of an existing stream says it follows. One that is not there means that
-- a version would be skipped; no append of ours may do that, however it came about.
--
-- NOTIFY is never in here: it would hold a lock of the whole server across the flush and queue up all commits behind it.
-- Must stay VOLATILE plpgsql: each statement in it sees what was committed before that statement began.
CREATE FUNCTION tracon_append(
    strict boolean, writer uuid, followed_streams uuid[], followed_versions bigint[],
    streams uuid[], versions bigint[], topics text[], states bytea[], tenants text[],
    OUT positions bigint[], OUT stamp timestamptz
) LANGUAGE plpgsql VOLATILE AS $$
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

-- The same for when the above was refused, or its answer was lost: judge each append (numbered by `appends`) by itself,
-- so that one which comes too late leaves its batch mates alone.
--
-- Per event, in the order given: where it is stored and since when, or nothing; and whether it is the reason why its
-- append was refused. An append that was `resent` may find its own rows, stored by the attempt whose answer was lost:
-- they are recognised by writer and content, and count as stored.
CREATE FUNCTION tracon_append_apart(
    strict boolean, writer uuid, appends integer[], resent boolean[],
    streams uuid[], versions bigint[], topics text[], states bytea[], tenants text[]
) RETURNS TABLE (stored_position bigint, stored_at timestamptz, refused boolean) LANGUAGE plpgsql VOLATILE AS $$
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

CREATE FUNCTION tracon_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE restrict_violation USING MESSAGE = 'events are never changed or removed',
                                   TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END $$;

CREATE TRIGGER stored_events_append_only BEFORE UPDATE OR DELETE ON stored_events
    FOR EACH STATEMENT EXECUTE FUNCTION tracon_refuse_change();
