"""Alembic's entry: runs the migrations on the connection that `store.migrate` hands over."""

from alembic import context

from store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
