"""Wiring: the only place where parts are put together. What is not asked for is not loaded."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.app.databases import (
        Checked,
        Kept,
        Restored,
        Violation,
        backup,
        check_database,
        restore,
        show_address,
        upgrade_database,
    )

__all__ = [
    "Checked",
    "Kept",
    "Restored",
    "Violation",
    "backup",
    "check_database",
    "restore",
    "show_address",
    "upgrade_database",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from clew.app import databases  # noqa: PLC0415 - a server has no use for it

    return getattr(databases, name)
