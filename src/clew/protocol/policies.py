"""Policies in the API: what is set for an agent or a project, and what then applies."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PolicyView:
    """`set` are the fields that were set; `applies` has all of them, with the defaults of the others. A run has the
    fields of its project, then those of its agent."""

    kind: str
    """agent or project."""
    name: str
    set: Mapping[str, object]
    applies: Mapping[str, object]
