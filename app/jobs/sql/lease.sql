-- Lease jobs of agents and workflows that a host knows, or that are their tenant's own: from the lanes in their order, so many of
-- each; in a lane by priority, then by age.
-- A job is free if nobody has it, or whoever had it let its lease run out. Jobs that another host is leasing at this
-- moment are passed by; whoever waited for nothing here cannot have waited for one that is then gone.
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::integer[]) WITH ORDINALITY AS lane(name, free, place)
), chosen AS (
    SELECT job.run_id
      FROM wanted
     CROSS JOIN LATERAL (
           SELECT run_id, priority, position
             FROM job_queue
            WHERE lane = wanted.name
              AND leased_until <= statement_timestamp()
              AND (agent = ANY ($4::text[]) OR EXISTS (
                   SELECT FROM jobs
                    WHERE jobs.run_id = job_queue.run_id
                      AND (EXISTS (SELECT FROM agent_definitions AS own
                                    WHERE own.tenant_id = jobs.tenant_id AND own.name = jobs.agent)
                           OR EXISTS (SELECT FROM workflow_definitions AS own
                                       WHERE own.tenant_id = jobs.tenant_id AND own.name = jobs.agent))))
            ORDER BY priority DESC, position
            LIMIT wanted.free
              FOR NO KEY UPDATE SKIP LOCKED) AS job
     ORDER BY wanted.place, job.priority DESC, job.position
     LIMIT $3
)
UPDATE job_queue AS job
   SET owner = $5,
       term = job.term + 1,
       attempts = job.attempts + 1,
       leased_until = clock_timestamp() + $6::interval
  FROM chosen
 WHERE job.run_id = chosen.run_id
RETURNING job.run_id, job.lane, job.term, job.attempts, job.max_attempts,
          extract(epoch FROM clock_timestamp() - job.queued_at)::float8 AS waited_s
