"""The HTTP face of the service: routes, handlers and their errors."""
