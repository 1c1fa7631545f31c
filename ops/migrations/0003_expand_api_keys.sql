-- ops/migrations/0003_expand_api_keys.sql
-- Who may call the service. A key is a claim and not a fact of a run, so it is a plain row and no event.
--
-- The secret itself is nowhere: `digest` is the SHA-256 of the whole key. It has 256 random bits, so nothing slower
-- is needed to keep it from being guessed. `prefix` is the part of a key that is shown, and by which it is found.

CREATE TABLE api_keys (
    key_id       uuid        NOT NULL,
    tenant_id    text        NOT NULL,
    name         text        NOT NULL,
    prefix       text        NOT NULL,
    digest       bytea       NOT NULL,
    scopes       text[]      NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    -- Written at most once a minute, and after the request: it says "about then".
    last_used_at timestamptz,

    CONSTRAINT api_keys_one_row PRIMARY KEY (key_id),
    CONSTRAINT api_keys_one_prefix UNIQUE (prefix),
    CONSTRAINT api_keys_whole_digest CHECK (octet_length(digest) = 32),
    CONSTRAINT api_keys_some_scope CHECK (cardinality(scopes) > 0)
);

CREATE INDEX api_keys_newest ON api_keys (tenant_id, created_at DESC, key_id DESC);
