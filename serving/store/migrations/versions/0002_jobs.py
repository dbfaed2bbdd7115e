"""Jobs that go on in the background."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables of jobs."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("wish", sa.JSON, nullable=False),
        sa.Column("total", sa.Integer),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("message", sa.String(2000), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_table(
        "job_errors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("file", sa.String(1000), nullable=False),
        sa.Column("message", sa.String(2000), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_job_errors"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_errors_job_id", ondelete="CASCADE"),
    )
    op.create_index("ix_job_errors_job_id_id", "job_errors", ["job_id", "id"])


def downgrade() -> None:
    """Drop them again."""
    op.drop_table("job_errors")
    op.drop_table("jobs")
