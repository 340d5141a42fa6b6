"""Bounds of path and query parameters, and strict request bodies."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import ConfigDict, with_config

from clew.protocol import requests as asks
from clew.protocol import views

_MAX_LENGTH = 200

Name = Annotated[str, Path(min_length=1, max_length=_MAX_LENGTH)]
Filter = Annotated[str | None, Query(max_length=_MAX_LENGTH)]
Limit = Annotated[int, Query(ge=1, le=500)]
Seq = Annotated[int, Query(ge=0, le=2**31 - 1)]
Before = Annotated[str | None, Query(max_length=_MAX_LENGTH)]

# An unknown field is probably a typo; ignoring it would silently drop what the client asked for.
_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)

for _each in (
    asks.NewAgent,
    asks.AgentChange,
    asks.RhythmChange,
    asks.NewProject,
    asks.ProjectChange,
    asks.NewIssue,
    asks.NewChat,
    asks.Words,
    asks.Poke,
    asks.Assign,
    asks.AnswerTo,
    asks.Adopt,
    asks.Replay,
    views.Rhythm,
):
    with_config(_STRICT)(_each)
