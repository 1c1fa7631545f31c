"""Idempotency keys: a submission that is repeated gets its first answer again (IDEM)."""
