"""A Chromium for each of two workers, a server for each test, and persons who open its pages."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from playwright.sync_api import Error, Page

from tests.skipped import BROWSER, skip
from tests.web.chromium import Chromium
from tests.web.kit import House, house
from tests.web.scene import Scene, build
from tests.web.visitor import Visitor
from tools import browser

_HERE = Path(__file__).parent
_GROUPS = 2
"""How many Chromiums may run at once: the tests of a group stay in one worker."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """Where there is none, the test is skipped and says why."""
    try:
        program = browser.chromium()
    except browser.NoBrowser as fault:
        skip(BROWSER, str(fault))
    if program is None:
        skip(BROWSER, f"{', '.join(browser.NAMES)}: none of them is here. Run `make browser`.")
    started = Chromium(program)
    yield started
    started.close()


@pytest.fixture(name="house")
def _house(tmp_path: Path, chromium: Chromium) -> Iterator[House]:  # noqa: ARG001 - no server where tests are skipped
    with house(tmp_path) as started:
        yield started


@pytest.fixture(scope="session", name="scene")
def _scene(tmp_path_factory: pytest.TempPathFactory, chromium: Chromium) -> Iterator[Scene]:  # noqa: ARG001 - as above
    """A house where work goes on, for all tests of a worker: they look, and change nothing."""
    with house(tmp_path_factory.mktemp("scene")) as started:
        yield build(started)


class Visitors:
    """Makes persons with a browser profile of their own, logged in by a fresh link."""

    def __init__(self, chromium: Chromium, pictures: Path, regulars: dict[str, Visitor]) -> None:
        self._chromium, self._pictures, self._regulars = chromium, pictures, regulars
        self.all: list[Visitor] = []
        """Whoever came in this test."""
        self._made: list[Visitor] = []

    def __call__(self, house: House, *, login: bool = True, through: str | None = None, **options: Any) -> Visitor:
        """`through` is the address of a proxy. The options are those of `Visitor`."""

        def made() -> Visitor:
            visitor = Visitor(self._chromium, through or house.address, **options)
            self.all.append(visitor)
            self._made.append(visitor)
            if login:
                visitor.enter(house.link())
            return visitor

        return self._chromium.run(made)

    def regular(self, scene: Scene, **options: Any) -> Visitor:
        """One who has been here before with the same options: to make a profile and log in costs more than most pages.

        For the scene only, where visitors look and change nothing.
        """
        known = repr(sorted(options.items()))
        if known not in self._regulars or not self._regulars[known].is_there():
            self._regulars[known] = self(scene.house, **options)
            self._made.remove(self._regulars[known])
            return self._regulars[known]
        visitor = self._regulars[known]
        visitor.complaints.clear()
        self.all.append(visitor)
        return visitor

    def check(self) -> None:
        complaints = [each for visitor in self.all for each in visitor.unforgiven()]
        assert complaints == [], "the browser complained"

    def leave_traces(self) -> str:
        try:
            traces = (each.leave_traces(self._pictures, f"visitor-{at}") for at, each in enumerate(self.all))
            return "\n".join(traces)
        except Error as fault:
            return f"no pictures: {fault}"

    def close(self) -> None:
        for visitor in self._made:
            visitor.close()


@pytest.fixture(scope="session", name="regulars")
def _regulars() -> dict[str, Visitor]:
    """They go when the browser does."""
    return {}


@pytest.fixture
def visitors(chromium: Chromium, tmp_path: Path, regulars: dict[str, Visitor]) -> Iterator[Visitors]:
    made = Visitors(chromium, tmp_path, regulars)
    yield made
    chromium.run(made.close)


@pytest.fixture
def visitor(visitors: Visitors, house: House) -> Visitor:
    return visitors(house)


@pytest.fixture
def page(visitor: Visitor) -> Page:
    """A tab that is logged in, at the first page."""
    return visitor.page


# ---------------------------------------------------------------- how the tests run


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE) and "chromium" in getattr(item, "fixturenames", ()):
            # By its name, so that every worker comes to the same.
            item.add_marker(pytest.mark.xdist_group(f"browser-{crc32(item.nodeid.encode()) % _GROUPS}"))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """In the thread of the browser; what the browser complained about fails the test itself, not its end."""
    visitors, chromium = (pyfuncitem.funcargs.get(name) for name in ("visitors", "chromium"))
    if not isinstance(visitors, Visitors) or not isinstance(chromium, Chromium):
        return (yield)
    test = pyfuncitem.obj

    def played(**arguments: object) -> None:
        test(**arguments)
        visitors.check()

    pyfuncitem.obj = lambda **arguments: chromium.run(lambda: played(**arguments))
    try:
        return (yield)
    except BaseException:
        pyfuncitem.add_report_section("call", "pages", chromium.run(visitors.leave_traces))
        raise
    finally:
        pyfuncitem.obj = test
