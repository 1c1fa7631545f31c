DELETE FROM schedules WHERE schedule_id = ANY ($1::uuid[])
