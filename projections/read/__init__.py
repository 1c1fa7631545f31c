"""Queries over the views, for those who answer requests."""
