"""The event log and what is claimed beside it: leases and wake-ups."""
