"""How the parts of a host are made from its settings, room by room. `app.main` puts them together."""
