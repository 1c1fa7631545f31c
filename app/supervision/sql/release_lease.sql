-- End a term now, so that nobody has to wait for it to run out.
UPDATE leases SET expires_at = clock_timestamp()
 WHERE name = $1 AND owner = $2 AND epoch = $3 AND expires_at > clock_timestamp()
