"""Alembic's entry: runs the migrations on the connection that `serving.store.database` hands over."""

from alembic import context

from serving.store.tables import Table

context.configure(connection=context.config.attributes["connection"], target_metadata=Table.metadata)
with context.begin_transaction():
    context.run_migrations()
