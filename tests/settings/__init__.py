"""Settings: files, the environment, durations, relations."""
