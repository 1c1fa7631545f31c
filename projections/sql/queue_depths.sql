-- How much waits in each lane that has anything open, and for how long the oldest of it has.
SELECT lane,
       count(*) FILTER (WHERE waits) AS waiting,
       coalesce(max(age_s) FILTER (WHERE waits), 0)::float8 AS oldest_s
  FROM (SELECT lane,
               leased_until <= statement_timestamp() AS waits,
               extract(epoch FROM statement_timestamp() - queued_at) AS age_s
          FROM job_queue) AS job
 GROUP BY lane
