"""Workflows: runs of several nodes, in super-steps, with a checkpoint after each."""
