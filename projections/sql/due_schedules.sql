-- Those that are due first, each with the seconds until then; what is overdue comes first, with a negative number.
SELECT tenant_id, name, extract(epoch FROM next_due - clock_timestamp())::float8 AS in_s
  FROM schedules
 WHERE NOT paused AND next_due IS NOT NULL
 ORDER BY next_due
 LIMIT $1
