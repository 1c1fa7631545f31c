"""Live runs: one actor each, and the duties that keep them honest."""
