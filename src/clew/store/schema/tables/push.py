"""Browsers that are told of what needs a person while no page is open in them."""

from sqlalchemy import Index, Table

from clew.store.schema.tables.columns import integer, metadata, optional, required, row_id, timestamp

push_subscriptions = Table(
    "push_subscriptions",
    metadata,
    # Derived from the endpoint.
    row_id(),
    # Whose browser it is, by name.
    required("person"),
    # What the browser gave: where its service takes messages, its public key, and the secret that senders share.
    required("endpoint"),
    required("p256dh"),
    required("auth"),
    # The public key of the server that the browser takes messages from.
    required("server_key"),
    # 1 if the titles of threads are sent too.
    integer("titled"),
    # The ids of the notices that it was told of, as a JSON list.
    required("told", "[]"),
    # Why the last message was given up; NULL after one that arrived.
    optional("failure"),
    timestamp("created_at", nullable=False),
    Index("ix_push_subscriptions_person", "person", "created_at"),
)
