DELETE FROM quota_reservations WHERE run_id = ANY ($1::uuid[])
