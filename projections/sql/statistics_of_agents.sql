SELECT agent,
       sum(created)::bigint AS created,
       sum(started)::bigint AS started,
       sum(completed)::bigint AS completed,
       sum(failed)::bigint AS failed,
       sum(cancelled)::bigint AS cancelled,
       sum(ended_unstarted)::bigint AS ended_unstarted,
       sum(tool_calls)::bigint AS tool_calls,
       sum(failed_tool_calls)::bigint AS failed_tool_calls,
       sum(unknown_tool_calls)::bigint AS unknown_tool_calls,
       sum(awaiting_approval)::bigint AS awaiting_approval,
       sum(awaiting_input)::bigint AS awaiting_input
  FROM statistics_agents
 WHERE tenant_id = $1
   AND ($2::date IS NULL OR day >= $2)
   AND ($3::date IS NULL OR day < $3)
 GROUP BY agent
 ORDER BY agent
