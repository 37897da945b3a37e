"""Pure functions from records to Block Kit: no client, no database."""
