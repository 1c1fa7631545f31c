"""Getting to Postgres, tested on real servers."""
