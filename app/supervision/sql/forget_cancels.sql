-- Runs that have ended need not be told to stop. The view may be behind; what it says of an end is true.
DELETE FROM cancel_requests AS asked
 USING runs AS run
 WHERE run.run_id = asked.run_id AND run.ended_at IS NOT NULL
