-- Of each run, the calls of the last reply that asked for any: all that an event may still change.
SELECT call.*
  FROM unnest($1::uuid[]) AS touched(run_id)
 CROSS JOIN LATERAL (
       SELECT reply_sequence FROM tool_calls WHERE run_id = touched.run_id ORDER BY ordinal DESC LIMIT 1) AS last
  JOIN tool_calls AS call ON call.run_id = touched.run_id AND call.reply_sequence = last.reply_sequence
 ORDER BY call.run_id, call.ordinal
