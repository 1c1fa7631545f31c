"""Views of the event log; any of them can be dropped and rebuilt."""
