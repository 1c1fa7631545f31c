-- How far each projection is behind the end of the log: in positions, and by the age of its oldest unfolded event.
SELECT projection.name,
       greatest(log.end_position - coalesce(own.notification_id, 0), 0) AS events,
       coalesce((SELECT extract(epoch FROM clock_timestamp() - event.recorded_at)::float8
                   FROM stored_events AS event
                  WHERE event.notification_id > coalesce(own.notification_id, 0)
                  ORDER BY event.notification_id
                  LIMIT 1), 0) AS seconds
  FROM unnest($1::text[]) AS projection(name)
  LEFT JOIN notification_tracking AS own ON own.application_name = projection.name
 CROSS JOIN (SELECT coalesce(max(notification_id), 0) AS end_position FROM stored_events) AS log
