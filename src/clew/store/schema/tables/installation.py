"""Tables of the installation as a whole: the schema version, and access tokens."""

from sqlalchemy import Column, Table, Text, UniqueConstraint

from clew.store.schema.tables.columns import metadata, required, row_id, timestamp

meta = Table("meta", metadata, Column("key", Text, primary_key=True), required("value"))

tokens = Table(
    "tokens",
    metadata,
    row_id(),
    required("kind"),
    required("digest"),
    required("may", "{}"),
    timestamp("created_at", nullable=False),
    timestamp("expires_at"),
    UniqueConstraint("digest"),
)
