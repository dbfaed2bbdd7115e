"""Collections and their items."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "collections",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_collections"),
        sa.UniqueConstraint("name", name="uq_collections_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "items",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("collection_id", sa.Integer, nullable=False),
        sa.Column("label", sa.String(200)),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("sha256", sa.String(64)),
        sa.Column("media_type", sa.String(50)),
        sa.Column("width", sa.Integer),
        sa.Column("height", sa.Integer),
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("embedding", sa.LargeBinary, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_items"),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collections.id"], name="fk_items_collection_id", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("collection_id", "sha256", name="uq_items_collection_id_sha256"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_items_collection_id_label_id", "items", ["collection_id", "label", "id"])
    op.create_table(
        "changes",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("collection_id", sa.Integer, nullable=False),
        sa.Column("item_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_changes"),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collections.id"], name="fk_changes_collection_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_collection_id_number", "changes", ["collection_id", "number"])
    op.create_table(
        "idempotency_keys",
        sa.Column("collection_id", sa.Integer, nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("item_id", sa.Integer, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("collection_id", "key", name="pk_idempotency_keys"),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collections.id"], name="fk_idempotency_keys_collection_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """Drop them again."""
    for table in ("idempotency_keys", "changes", "items", "collections"):
        op.drop_table(table)
