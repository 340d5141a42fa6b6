"""Plugins: providers, context engines and deliveries, found by entry point.

A package adds a plugin by an entry point in its metadata.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import invalidate_caches
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Generic, TypeVar

from clew.ports.context import ContextEngine, EngineSettings
from clew.ports.delivery import Delivery, DeliverySettings
from clew.ports.fault import Fault
from clew.ports.provider import Provider, Settings

S = TypeVar("S")
P = TypeVar("P")


class PluginFault(Fault):
    """Its code begins with the kind of plugin: `provider:broken`."""

    _what = "broken"

    def __init__(self, noun: str, words: str, remedy: str) -> None:
        super().__init__(words, remedy)
        self.code = f"{noun.replace(' ', '-')}:{self._what}"


class BrokenPlugin(PluginFault):
    pass


class UnknownPlugin(PluginFault):
    _what = "unknown"


# No slots: Python 3.11 cannot call the alias of a generic class that is both frozen and slotted.
@dataclass(frozen=True)
class Plugins(Generic[S, P]):
    """The plugins of one kind. A broken one is listed with its fault, and the others work.

    `noun` names the kind in sentences; `method` is a method that each plugin must have.
    """

    noun: str
    method: str
    makers: Mapping[str, Callable[[S], P]]
    broken: Mapping[str, BrokenPlugin]

    def check(self, name: str) -> None:
        """Raise why there is no such plugin, or why it cannot be used."""
        if name in self.broken:
            raise self.broken[name]
        if name not in self.makers:
            installed = ", ".join(sorted(self.makers)) or "none"
            raise UnknownPlugin(self.noun, f"There is no {self.noun} {name!r}.", f"Installed: {installed}.")

    def make(self, name: str, settings: S) -> P:
        self.check(name)
        try:
            made = self.makers[name](settings)
        except (Fault, KeyboardInterrupt):
            raise
        except BaseException as fault:
            words = f"The {self.noun} {name} cannot be made: {type(fault).__name__}: {fault}."
            raise BrokenPlugin(self.noun, words, _REINSTALL) from fault
        if not callable(getattr(made, self.method, None)):
            words = f"The {self.noun} {name} made {made!r}, which has no method {self.method}()."
            raise BrokenPlugin(self.noun, words, _REINSTALL)
        return made


Providers = Plugins[Settings, Provider]
Engines = Plugins[EngineSettings, ContextEngine]
Deliveries = Plugins[DeliverySettings, Delivery]

_REINSTALL = "Install it again, or remove it."


def find_providers() -> Providers:
    """Every installed provider, also those that were installed since the last call. The first call is slow: it imports
    what each of them needs."""
    invalidate_caches()
    return _find("clew.providers", "provider", "open")


def find_engines() -> Engines:
    return _find("clew.context_engines", "context engine", "assemble")


def find_deliveries() -> Deliveries:
    return _find("clew.deliveries", "delivery", "send")


def _find(group: str, noun: str, method: str) -> Plugins[S, P]:
    makers: dict[str, Callable[[S], P]] = {}
    broken: dict[str, BrokenPlugin] = {}
    for point in sorted(_points(group, noun, broken), key=_rank):
        package = _package(point)
        if point.name in makers or point.name in broken:
            words = f"Two packages offer a {noun} {point.name}; the one of {package} is not used."
            broken[f"{point.name} of {package}"] = BrokenPlugin(noun, words, "Remove one of them.")
            continue
        try:
            found = point.load()
            why = "" if callable(found) else f"{point.value} is no function"
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - a package may raise anything when it is imported
            why = f"{type(fault).__name__}: {fault}"
        if why:
            words = f"The {noun} {point.name} of {package} cannot be used: {why}."
            broken[point.name] = BrokenPlugin(noun, words, _REINSTALL)
        else:
            makers[point.name] = found
    return Plugins(noun, method, makers, broken)


def _points(group: str, noun: str, broken: dict[str, BrokenPlugin]) -> Iterable[EntryPoint]:
    try:
        return entry_points(group=group)
    except Exception:  # noqa: BLE001 - one unreadable list makes the library fail for all packages
        return _one_by_one(group, noun, broken)


def _one_by_one(group: str, noun: str, broken: dict[str, BrokenPlugin]) -> Iterator[EntryPoint]:
    """The entry points of every package whose list can be read. Of a package installed twice, the first counts."""
    seen: set[str] = set()
    for package in distributions():
        name = str(package.name)
        if (key := re.sub(r"[-_.]+", "-", name).lower()) in seen:
            continue
        seen.add(key)
        try:
            yield from package.entry_points.select(group=group)
        except Exception as fault:  # noqa: BLE001 - a malformed list may raise anything in the library
            words = f"The entry points of the package {name} cannot be read: {type(fault).__name__}: {fault}."
            broken[f"those of {name}"] = BrokenPlugin(noun, words, _REINSTALL)


def _rank(point: EntryPoint) -> tuple[str, bool, str]:
    """Of two with the same name, Clew's own comes first, then by the name of the package."""
    package = _package(point)
    return point.name, package != "clew", package


def _package(point: EntryPoint) -> str:
    return str(point.dist.name) if point.dist is not None else "an unknown package"
