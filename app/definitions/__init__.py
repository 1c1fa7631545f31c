"""Agents that are defined over HTTP, beside those of code and settings."""
