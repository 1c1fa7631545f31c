"""A provider on loopback that answers well or badly, as the model's name says, and keeps its own log."""
