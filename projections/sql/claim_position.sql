-- Whoever gets the row works; to others it is not there until this transaction ends, however it ends.
-- What a view commits need not be flushed: were it lost in a crash of the server, its position would be lost with it,
-- and it would be folded again.
SELECT notification_id, set_config('synchronous_commit', 'off', true)
  FROM notification_tracking
 WHERE application_name = $1
   FOR UPDATE SKIP LOCKED
