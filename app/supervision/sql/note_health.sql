-- What a look at a provider showed.
INSERT INTO provider_health AS known (provider, state, detail, took_s)
VALUES ($1, $2, $3, $4)
    ON CONFLICT (provider) DO UPDATE
   SET state = excluded.state, detail = excluded.detail, took_s = excluded.took_s, checked_at = clock_timestamp()
