"""Breaks things under load, by seed, and audits what is left. README.md here says how to read it.

It is no part of the package, so it may use what the tests are made of: the upstream of `tests/upstream`.
"""
