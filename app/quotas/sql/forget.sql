-- What the statistics have by now, and what never came to be.
DELETE FROM quota_reservations reserved
WHERE reserved.tenant_id = $1
  AND reserved.reserved_at < now() - $2::interval
  AND NOT EXISTS (
      SELECT FROM stored_events created
      WHERE created.originator_id = reserved.run_id AND created.originator_version = 1
        AND created.notification_id > COALESCE(
            (SELECT notification_id FROM notification_tracking WHERE application_name = 'statistics'), 0)
  )
