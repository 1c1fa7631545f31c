-- Other hosts note the same keys: whoever comes within the minute has nothing to add.
UPDATE api_keys SET last_used_at = clock_timestamp()
WHERE key_id = ANY($1::uuid[])
  AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '59 seconds')
