"""The service: everything that touches a socket, a clock or a database."""
