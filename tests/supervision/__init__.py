"""Live runs: their actors, their supervisor, and what crashes do to them."""
