"""The actor of a request: the guard puts it there once the request's token or cookie was accepted."""

from typing import Annotated

from fastapi import Depends, Request

from clew.control.actor import Actor


def _actor(request: Request) -> Actor:
    actor: Actor = request.state.actor
    return actor


By = Annotated[Actor, Depends(_actor)]
