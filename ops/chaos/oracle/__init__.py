"""The oracle: holds what a trial left behind against what was promised."""
