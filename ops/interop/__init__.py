"""Other people's clients, which decide whether our OpenAI-compatible API is compatible."""
