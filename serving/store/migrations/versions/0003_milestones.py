"""What happens once in the life of a database."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "milestones",
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("reached", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_milestones"),
    )


def downgrade() -> None:
    """Drop it again."""
    op.drop_table("milestones")
