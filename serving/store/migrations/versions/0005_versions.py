"""Versions of models: which one answers, and vectors that another one has made already."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "models_in_use",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_models_in_use"),
    )
    op.create_table(
        "prepared_vectors",
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("picture", sa.String(64), nullable=False),
        sa.Column("embedding", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("model", "picture", name="pk_prepared_vectors"),
    )


def downgrade() -> None:
    """Drop them again."""
    op.drop_table("prepared_vectors")
    op.drop_table("models_in_use")
