"""API keys: who may call the service, for which tenant, and for what."""
