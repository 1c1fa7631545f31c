"""A workflow: its definition and graph, what its runs plan, decide and record, and how they go on. Pure."""
