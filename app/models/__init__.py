"""Model providers, and the gates that stand around one call to them."""
