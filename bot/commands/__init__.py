"""The commands of `vistobueno`, one file per noun; each has register(cli)."""
