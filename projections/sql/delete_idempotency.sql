DELETE FROM idempotency
