"""What a run is and what may happen to it, with nothing around it."""
