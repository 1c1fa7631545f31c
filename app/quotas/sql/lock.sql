-- Those who are admitted for a tenant take turns, on all hosts.
SELECT pg_advisory_xact_lock(hashtextextended('tracon quota ' || $1, 0))
