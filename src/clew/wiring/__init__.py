"""Wiring: the only place where parts are put together."""

from clew.wiring.databases import (
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
