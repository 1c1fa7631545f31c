"""Requests of every shape that the API's own description allows, and many that it does not."""
