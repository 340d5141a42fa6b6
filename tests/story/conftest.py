"""The real agents, as tests of providers have them."""

from tests.providers.conftest import agents

__all__ = ["agents"]
