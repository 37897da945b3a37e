"""The first tables: conversations, runs, calls, approvals, cards and the record."""

from pathlib import Path

from alembic import op

from store import ddl

revision = "0004"  # those before it were never released
down_revision = None


def upgrade() -> None:
    """Run the frozen SQL, then make the app's role and its grants where the owner may."""
    connection = op.get_bind()
    for statement in Path(__file__).with_suffix(".sql").read_text().split("\n;;\n"):
        if statement.strip():
            ddl.run(connection, statement)
    ddl.grant_app_role(connection)
