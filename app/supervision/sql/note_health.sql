-- What a look at each provider showed.
INSERT INTO provider_health AS known (provider, state, detail, took_s)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[])
    ON CONFLICT (provider) DO UPDATE
   SET state = excluded.state, detail = excluded.detail, took_s = excluded.took_s, checked_at = clock_timestamp()
