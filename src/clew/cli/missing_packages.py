"""Packages that Clew needs and that are not installed, as after `pip install --no-deps`. Imports nothing of them."""

import re
from importlib import metadata

REMEDY = "Install Clew with what it needs: `pip install clew`, `pipx install clew` or `uv tool install clew`."


def missing_packages() -> list[str]:
    try:
        needed = metadata.requires("clew") or []
    except metadata.PackageNotFoundError:
        return []
    # Extras are not needed to run.
    names = [re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0] for each in needed if "extra ==" not in each]
    return [name for name in names if not _is_installed(name)]


def missing_words(missing: list[str]) -> str:
    one = len(missing) == 1
    return (
        f"{'A package' if one else 'Packages'} that Clew needs {'is' if one else 'are'} missing: {', '.join(missing)}."
    )


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
