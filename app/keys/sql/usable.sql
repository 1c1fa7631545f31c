-- Only a key that may be used, and for how long it still may: by the database's clock, like everything that decides.
SELECT key_id, tenant_id, scopes, digest, extract(epoch FROM expires_at - clock_timestamp())::float8 AS expires_in_s
FROM api_keys
WHERE prefix = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
