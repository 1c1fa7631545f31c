-- A tree, level by level: a parent comes before its children, and those in the order in which they were started.
SELECT *
  FROM (SELECT * FROM runs WHERE tenant_id = $1 AND run_id = $2
        UNION ALL
        SELECT * FROM runs WHERE tenant_id = $1 AND root_run_id = $2 AND parent_run_id IS NOT NULL) AS tree
 ORDER BY depth, created_at, run_id
OFFSET $3 LIMIT $4
