"""Observations, votes, leases, taxa, their history, and API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "taxa",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("rank", sa.String(50), nullable=False),
        sa.Column("parent_id", sa.Integer),
        sa.Column("synonyms", sa.JSON, nullable=False),
        sa.Column("common_names", sa.JSON, nullable=False),
        sa.Column("gbif_key", sa.Integer),
        sa.Column("retired", sa.Boolean, nullable=False),
        sa.Column("merged_into", sa.Integer),
        sa.Column("created", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_taxa"),
        sa.ForeignKeyConstraint(["parent_id"], ["taxa.id"], name="fk_taxa_parent_id"),
        sa.ForeignKeyConstraint(["merged_into"], ["taxa.id"], name="fk_taxa_merged_into"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_taxa_name_of_live",
        "taxa",
        ["name"],
        unique=True,
        sqlite_where=sa.text("retired = 0"),
        postgresql_where=sa.text("NOT retired"),
    )
    op.create_index("ix_taxa_parent_id", "taxa", ["parent_id"])
    op.create_table(
        "review_policies",
        sa.Column("collection_id", sa.Integer, nullable=False),
        sa.Column("rule", sa.String(20), nullable=False),
        sa.Column("blind", sa.Boolean, nullable=False),
        sa.Column("random_share", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("collection_id", name="pk_review_policies"),
        _child("review_policies", "collection_id", "collections.id"),
    )
    op.create_table(
        "observations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("collection_id", sa.Integer, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("taxon_id", sa.Integer),
        sa.Column("observed", sa.String(40)),
        sa.Column("latitude", sa.Float),
        sa.Column("longitude", sa.Float),
        sa.Column("place", sa.String(500), nullable=False),
        sa.Column("observer", sa.String(200), nullable=False),
        sa.Column("notes", sa.String(5000), nullable=False),
        sa.Column("submitter", sa.String(100), nullable=False),
        sa.Column("identification", sa.JSON, nullable=False),
        sa.Column("doubt", sa.Float, nullable=False),
        sa.Column("sampled", sa.Boolean, nullable=False),
        sa.Column("created", MOMENT, nullable=False),
        sa.Column("decided", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_observations"),
        _child("observations", "collection_id", "collections.id"),
        sa.ForeignKeyConstraint(["taxon_id"], ["taxa.id"], name="fk_observations_taxon_id"),
        sqlite_autoincrement=True,
    )
    queue = ["collection_id", "status", "sampled", "doubt"]
    op.create_index("ix_observations_collection_id_status_sampled_doubt", "observations", queue)
    came = ["collection_id", "status", "sampled", "id"]
    op.create_index("ix_observations_collection_id_status_sampled_id", "observations", came)
    op.create_index("ix_observations_taxon_id", "observations", ["taxon_id"])
    op.create_table(
        "observation_images",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("observation_id", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("media_type", sa.String(50), nullable=False),
        sa.Column("width", sa.Integer, nullable=False),
        sa.Column("height", sa.Integer, nullable=False),
        sa.Column("organ", sa.String(50)),
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("embedding", sa.LargeBinary, nullable=False),
        sa.Column("item_id", sa.Integer),
        sa.Column("adopted", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_observation_images"),
        _child("observation_images", "observation_id", "observations.id"),
    )
    op.create_index("ix_observation_images_observation_id", "observation_images", ["observation_id"])
    op.create_index("ix_observation_images_sha256", "observation_images", ["sha256"])
    op.create_table(
        "votes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("observation_id", sa.Integer, nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("taxon_id", sa.Integer),
        sa.Column("comment", sa.String(2000), nullable=False),
        sa.Column("withdrawn", sa.Boolean, nullable=False),
        sa.Column("created", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_votes"),
        _child("votes", "observation_id", "observations.id"),
        sa.ForeignKeyConstraint(["taxon_id"], ["taxa.id"], name="fk_votes_taxon_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_votes_observation_id_withdrawn", "votes", ["observation_id", "withdrawn"])
    op.create_index("ix_votes_taxon_id", "votes", ["taxon_id"])
    op.create_table(
        "leases",
        sa.Column("observation_id", sa.Integer, nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("expires", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("observation_id", name="pk_leases"),
        _child("leases", "observation_id", "observations.id"),
    )
    op.create_index("ix_leases_who", "leases", ["who"])
    op.create_table(
        "events",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("observation_id", sa.Integer),
        sa.Column("taxon_id", sa.Integer),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("facts", sa.JSON, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_observation_id_number", "events", ["observation_id", "number"])
    op.create_index("ix_events_taxon_id_number", "events", ["taxon_id", "number"])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created", MOMENT, nullable=False),
        sa.Column("expires", MOMENT),
        sa.Column("revoked", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("digest", name="uq_api_keys_digest"),
    )


def downgrade() -> None:
    """Drop them again."""
    tables = ("api_keys", "events", "leases", "votes", "observation_images", "observations", "review_policies", "taxa")
    for table in tables:
        op.drop_table(table)


def _child(table: str, column: str, parent: str) -> sa.ForeignKeyConstraint:
    """A row that goes with the one it belongs to."""
    return sa.ForeignKeyConstraint([column], [parent], name=f"fk_{table}_{column}", ondelete="CASCADE")
