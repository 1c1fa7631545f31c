-- The only clock that decides anything.
SELECT clock_timestamp()
