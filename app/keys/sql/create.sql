INSERT INTO api_keys (key_id, tenant_id, name, prefix, digest, scopes, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7::interval)
RETURNING *
