"""Finding providers: by entry point, so that anyone adds one with a package of their own and nothing else."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, distributions, entry_points

from clew.ports.fault import Fault
from clew.ports.provider import Provider, Settings

GROUP = "clew.providers"

Make = Callable[[Settings], Provider]


class BrokenProvider(Fault):
    code = "provider:broken"


class UnknownProvider(Fault):
    code = "provider:unknown"


@dataclass(frozen=True, slots=True)
class Providers:
    """What was found. One that is broken is named with its fault and stops no other."""

    makers: Mapping[str, Make]
    broken: Mapping[str, BrokenProvider]

    def make(self, name: str, settings: Settings) -> Provider:
        if name in self.broken:
            raise self.broken[name]
        if name not in self.makers:
            raise UnknownProvider(
                f"There is no provider {name}.", f"There are {', '.join(sorted(self.makers)) or 'none'}."
            )
        try:
            made = self.makers[name](settings)
        except Fault:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as fault:
            words = f"The provider {name} cannot be made: {type(fault).__name__}: {fault}."
            raise BrokenProvider(words, "Install it again, or remove it.") from fault
        if not callable(getattr(made, "open", None)):
            raise BrokenProvider(f"The provider {name} made {made!r}, which opens nothing.", "Install it again.")
        return made


def find_providers() -> Providers:
    """Every provider that is installed. What a provider needs is imported when it is found, so call this once."""
    makers: dict[str, Make] = {}
    broken: dict[str, BrokenProvider] = {}
    for point in sorted(_points(broken), key=_rank):
        if point.name in makers or point.name in broken:
            broken[f"{point.name} of {_package(point)}"] = BrokenProvider(
                f"Two packages offer a provider {point.name}; that of {_package(point)} is not used.",
                "Remove one of them.",
            )
            continue
        try:
            found = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - whatever a stranger's package does when it is imported
            broken[point.name] = _broken(point, f"{type(fault).__name__}: {fault}")
            continue
        if callable(found):
            makers[point.name] = found
        else:
            broken[point.name] = _broken(point, f"{point.value} is no function")
    return Providers(makers, broken)


def _points(broken: dict[str, BrokenProvider]) -> Iterable[EntryPoint]:
    try:
        return entry_points(group=GROUP)
    except Exception:  # noqa: BLE001 - one list that cannot be read keeps the library from all others
        return _one_by_one(broken)


def _one_by_one(broken: dict[str, BrokenProvider]) -> Iterator[EntryPoint]:
    """The lists of all packages but those that cannot be read; of a package that is there twice, the first counts."""
    seen: set[str] = set()
    for package in distributions():
        name = str(package.name)
        if (key := re.sub(r"[-_.]+", "-", name).lower()) in seen:
            continue
        seen.add(key)
        try:
            yield from package.entry_points.select(group=GROUP)
        except Exception as fault:  # noqa: BLE001 - whatever a stranger's list makes of the library
            broken[f"those of {name}"] = BrokenProvider(
                f"What the package {name} offers cannot be read: {type(fault).__name__}: {fault}.",
                "Install it again, or remove it.",
            )


def _rank(point: EntryPoint) -> tuple[str, bool, str]:
    """Of two with one name Clew's own counts, whatever order they were installed in."""
    package = _package(point)
    return point.name, package != "clew", package


def _package(point: EntryPoint) -> str:
    return str(point.dist.name) if point.dist is not None else "an unknown package"


def _broken(point: EntryPoint, why: str) -> BrokenProvider:
    return BrokenProvider(
        f"The provider {point.name} of {_package(point)} cannot be used: {why}.", "Install it again, or remove it."
    )
