SELECT * FROM schedules WHERE tenant_id = $1 ORDER BY name OFFSET $2 LIMIT $3
