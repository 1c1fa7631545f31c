-- Begin a term, if nobody's runs. Otherwise say for how long the present one still does.
--
-- $1 the lease, $2 who asks, $3 seconds that it lasts.
WITH acquired AS (
    INSERT INTO leases AS held (name, owner, epoch, acquired_at, renewed_at, expires_at)
    VALUES ($1, $2, 1, clock_timestamp(), clock_timestamp(), clock_timestamp() + make_interval(secs => $3))
        ON CONFLICT (name) DO UPDATE
       SET owner = excluded.owner, epoch = held.epoch + 1, acquired_at = clock_timestamp(),
           renewed_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => $3)
     WHERE held.expires_at <= clock_timestamp()
    RETURNING epoch
)
SELECT (SELECT epoch FROM acquired) AS epoch,
       coalesce((SELECT extract(epoch FROM held.expires_at - clock_timestamp())::float8
                   FROM leases AS held WHERE held.name = $1), 0) AS runs_for_s
