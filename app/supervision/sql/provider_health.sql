-- What was seen last of each provider.
SELECT provider, state, detail, took_s, checked_at FROM provider_health WHERE provider = ANY ($1::text[])
