"""A fallback chain: what follows from a failed model call, where a turn stands, and what is recorded."""
