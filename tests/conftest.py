"""How hard hypothesis looks: as usual, repeatably (CI), or thoroughly (CLEW_THOROUGH=1)."""

import os

from hypothesis import settings

from tests.providers.conftest import pytest_terminal_summary

# A hook that sums up a whole run must stand here, or it is not heard when the run is spread over processes.
__all__ = ["pytest_terminal_summary"]

# A shared machine makes single examples slow at random, so no example has a deadline.
settings.register_profile("clew", deadline=None)
settings.register_profile("clew-ci", deadline=None, derandomize=True)
settings.register_profile("clew-thorough", deadline=None, max_examples=2_000)

if os.environ.get("CLEW_THOROUGH") == "1":
    settings.load_profile("clew-thorough")
elif os.environ.get("CI"):
    settings.load_profile("clew-ci")
else:
    settings.load_profile("clew")
