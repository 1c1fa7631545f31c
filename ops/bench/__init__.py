"""Benchmarks: comparisons in one run, in turns, on the machine at hand. Ratios travel; times do not."""
