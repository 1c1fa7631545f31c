"""Tests, laid out like the code they hold to its word."""
