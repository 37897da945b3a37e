"""The history of the tables: each version is plain SQL, frozen once released."""
