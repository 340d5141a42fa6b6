"""The installation: schema version, access tokens, machines, their runtimes, and the programs on each runtime."""

from sqlalchemy import CheckConstraint, Column, PrimaryKeyConstraint, Table, Text, UniqueConstraint

from clew.store.schema.tables.columns import integer, metadata, optional, reference, required, row_id, timestamp

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


UNKNOWN_RUNTIME = "unknown"
"""The runtime of a session whose origin is unknown. No run is ever on it, so such a session is never resumed."""

machines = Table(
    "machines",
    metadata,
    row_id(),
    required("name"),
    # The directory below which it creates workspaces. NULL: it creates none.
    optional("root"),
    timestamp("seen_at"),
)

runtimes = Table(
    "runtimes",
    metadata,
    row_id(),
    reference("machine_id", "machines.id"),
    required("provider"),
    required("home"),
    optional("account"),
    required("capabilities", "{}"),
    integer("max_live", 4),
    timestamp("seen_at"),
    UniqueConstraint("machine_id", "provider", "home"),
    CheckConstraint("max_live >= 0", "max_live"),
)

# One row for each way in which agents are started on a runtime. Account and capabilities depend on the command line,
# the home, the environment and the options, so two agents in one home can differ in them.
programs = Table(
    "programs",
    metadata,
    reference("runtime_id", "runtimes.id"),
    required("key"),
    optional("account"),
    # A digest of the API key or token it is given. A different key is not taken for a different account.
    optional("credential"),
    required("capabilities", "{}"),
    timestamp("seen_at"),
    PrimaryKeyConstraint("runtime_id", "key"),
)
