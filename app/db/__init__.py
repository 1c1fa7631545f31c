"""Getting to Postgres: an embedded server, a pool, and migrations."""
