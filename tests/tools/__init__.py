"""Tools: what a model is told, what it may send, how a call ends."""
