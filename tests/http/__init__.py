"""The HTTP face, over real connections where a connection matters."""
