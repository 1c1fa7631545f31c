"""What a run is and what may happen to it, decided without any IO."""
