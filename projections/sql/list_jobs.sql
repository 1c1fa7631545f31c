-- Newest first, with who has those that are open. A filter that is null is none.
SELECT job.*, queue.owner, queue.attempts, queue.leased_until
  FROM (SELECT *
          FROM jobs
         WHERE tenant_id = $1
           AND ($2::text IS NULL OR status = $2)
           AND ($3::text IS NULL OR lane = $3)
           AND ($4::text IS NULL OR agent = $4)
           AND ($5::uuid IS NULL OR batch_id = $5)
           AND ($6::text IS NULL OR schedule = $6)
         ORDER BY queued_at DESC, run_id DESC
        OFFSET $7 LIMIT $8) AS job
  LEFT JOIN job_queue AS queue ON queue.run_id = job.run_id
 ORDER BY job.queued_at DESC, job.run_id DESC
