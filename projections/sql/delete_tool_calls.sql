DELETE FROM tool_calls
