SELECT * FROM idempotency WHERE stream_id = ANY ($1::uuid[])
