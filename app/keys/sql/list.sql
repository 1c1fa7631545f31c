SELECT * FROM api_keys
WHERE $1::text IS NULL OR tenant_id = $1
ORDER BY created_at DESC, key_id DESC
OFFSET $2 LIMIT $3
