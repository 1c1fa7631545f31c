"""Tools that agents call: registered, described, run within limits."""
