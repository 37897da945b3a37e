"""A small shop as an example of user code: its own schema, its own provider, five tools."""
