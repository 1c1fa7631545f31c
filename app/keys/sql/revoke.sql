-- Revoking twice changes nothing: the first time stands.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp())
WHERE (key_id = $1::uuid OR prefix = $2) AND ($3::text IS NULL OR tenant_id = $3)
RETURNING *
