-- Who has an append in flight: the holders of the lock that every append takes before it draws its first position.
-- A lock is given back after its transaction has become visible, so whoever is missing here is visible to the next query.
SELECT virtualtransaction
  FROM pg_locks
 WHERE locktype = 'advisory' AND classid = 7301 AND objid = 1 AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
