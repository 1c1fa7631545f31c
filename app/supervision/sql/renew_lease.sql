-- Go on with a term that has not run out.
UPDATE leases
   SET renewed_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => $4)
 WHERE name = $1 AND owner = $2 AND epoch = $3 AND expires_at > clock_timestamp()
RETURNING true
