"""Actors: who asks for something. Every use case takes one, and what it does is recorded under it."""

from dataclasses import dataclass

from clew.kernel import AgentId, Author, AuthorKind, MachineId, Origin, OriginKind, RunId


@dataclass(frozen=True, slots=True)
class Person:
    name: str


@dataclass(frozen=True, slots=True)
class MachineDaemon:
    """The daemon of a machine."""

    machine: MachineId


@dataclass(frozen=True, slots=True)
class RunAgent:
    """The agent of a run. `depth` counts the agents that woke one another up to that run."""

    run: RunId
    agent: AgentId
    name: str
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Timer:
    schedule: str


@dataclass(frozen=True, slots=True)
class Outside:
    """Something outside Clew, as `name` in `system`: github, acme/app#12."""

    system: str
    name: str


Actor = Person | MachineDaemon | RunAgent | Timer | Outside


def name_of(actor: Actor) -> str:
    """The actor in a word or two, as it is recorded and shown."""
    match actor:
        case Person(name):
            return name
        case MachineDaemon(machine):
            return f"machine {machine}"
        case RunAgent(run, _, name):
            return f"{name} in run {run}"
        case Timer(schedule):
            return f"timer {schedule}"
        case Outside(system, name):
            return f"{system}:{name}"


def reader_of(actor: Actor) -> str:
    """The name under which what a person has read and pinned is kept; empty for others."""
    return actor.name if isinstance(actor, Person) else ""


def author_of(actor: Actor) -> Author:
    """The actor as the author of a journal entry."""
    match actor:
        case Person(name):
            return Author(AuthorKind.HUMAN, name)
        case RunAgent(_, agent, name):
            return Author(AuthorKind.AGENT, name, agent)
        case Outside():
            return Author(AuthorKind.OUTSIDE, name_of(actor))
        case MachineDaemon() | Timer():
            return Author(AuthorKind.CLEW, name_of(actor))


def origin_of(actor: Actor) -> Origin:
    """The actor as the origin of a wake."""
    match actor:
        case Person():
            return Origin(OriginKind.HUMAN)
        case RunAgent(agent=agent, depth=depth):
            return Origin(OriginKind.AGENT, agent, depth + 1)
        case Timer():
            return Origin(OriginKind.TIMER)
        case Outside():
            return Origin(OriginKind.OUTSIDE)
        case MachineDaemon():
            return Origin(OriginKind.CLEW)
