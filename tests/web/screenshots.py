"""Pictures of every page, light and dark, wide and narrow, into docs/screenshots. `make screenshots` runs this.

What they show came of real runs (tests/web/scene.py). Look at them: aligned, readable, nothing cut off.
"""

import argparse
import re
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.web.chromium import Chromium
from tests.web.kit import House, house, picture
from tests.web.routes import address, routes
from tests.web.scene import Scene, build
from tests.web.visitor import NARROW, WIDE, Visitor
from tools.browser import NoBrowser, install

INTO = Path(__file__).parents[2] / "docs" / "screenshots"
MOST = 1_500_000
"""Bytes that all pictures together may have."""
STEPS = ((1.0, 75), (1.0, 55), (0.75, 55), (0.5, 60), (0.5, 40))
"""Scale and quality, the best first; the first of which all pictures are small enough is taken."""
VIEWS = [(width, dark) for width in (WIDE, NARROW) for dark in (False, True)]


@dataclass(frozen=True)
class Shot:
    name: str
    house: House
    path: str
    login: bool = True

    def file(self, width: int, dark: bool) -> str:
        return f"{self.name}-{'wide' if width == WIDE else 'narrow'}-{'dark' if dark else 'light'}.webp"


def name_of(route: str) -> str:
    """/threads/{ref}/changes is thread-changes."""
    return re.sub(r"s/\{\w+\}", "", route).strip("/").replace("/", "-") or "home"


SHOWN = {"search": "?q=login", "settings": "?agent=ada"}
"""What a page is asked for, where without it there is nothing to see."""


def shots(scene: Scene, empty: House) -> Iterator[Shot]:
    for route in routes():
        name = name_of(route)
        yield Shot(name, scene.house, address(route, scene.examples) + SHOWN.get(name, ""))
    for state in ("asks", "held", "failed", "running"):
        yield Shot(f"thread-{state}", scene.house, f"/threads/{getattr(scene, state)}")
    yield Shot("first-start", empty, "/")
    yield Shot("login", empty, "/", login=False)


def take(chromium: Chromium, shot: Shot, into: Path) -> None:
    """The picture in all views, and each in all steps of size."""
    for width, dark in VIEWS:
        visitor = Visitor(chromium, shot.house.address, width=width, dark=dark)
        try:
            if shot.login:
                visitor.enter(shot.house.link())
            page = visitor.open(shot.path, 200 if shot.login else 401)
            # A page of a thread where work goes on is never done with loading.
            page.wait_for_timeout(1000)
            for number, (scale, quality) in enumerate(STEPS):
                picture(page, into / str(number) / shot.file(width, dark), scale, quality)
        finally:
            visitor.close()


def keep(taken: Path, into: Path) -> int:
    """The best pictures that are small enough, in place of all that were there; returns their bytes."""
    for number in range(len(STEPS)):
        files = {file.name: file.read_bytes() for file in sorted((taken / str(number)).iterdir())}
        size = sum(map(len, files.values()))
        if size <= MOST:
            into.mkdir(exist_ok=True)
            for old in into.glob("*.webp"):
                old.unlink()
            for name, data in files.items():
                (into / name).write_bytes(data)
            return size
    raise SystemExit(f"{size:,} bytes are too much for pictures: show fewer pages.")


def sheet(chromium: Chromium, pictures: Path, file: Path) -> None:
    """All pictures on one, to look at."""
    shown = "".join(
        f"<figure><img src='data:image/webp;base64,{b64encode(each.read_bytes()).decode()}'><figcaption>{each.stem}"
        "</figcaption></figure>"
        for each in sorted(pictures.glob("*.webp"))
    )
    style = "body { display: flex; flex-wrap: wrap; gap: 8px } figure { margin: 0 } img { height: 800px }"
    with closing(chromium.browser.new_page(viewport={"width": 3400, "height": 800})) as page:
        page.set_content(f"<style>{style}</style>{shown}")
        page.screenshot(path=file, full_page=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make screenshots", description="Pictures of every page.")
    parser.add_argument("--into", type=Path, default=INTO, help="another directory than docs/screenshots")
    parser.add_argument("--sheet", type=Path, metavar="FILE.png", help="all of them on one picture as well")
    asked = parser.parse_args(arguments)
    try:
        chromium = Chromium(install())
    except NoBrowser as fault:
        print(fault, file=sys.stderr)
        return 1
    try:
        with tempfile.TemporaryDirectory(prefix="clew-") as directory:
            root = Path(directory)
            taken = root / "taken"
            for part in ("scene", "empty", *(f"taken/{number}" for number in range(len(STEPS)))):
                (root / part).mkdir(parents=True)
            with house(root / "scene") as worked, house(root / "empty") as empty:
                print("Building the scene", flush=True)
                for shot in shots(build(worked), empty):
                    print(f"  {shot.name}", flush=True)
                    chromium.run(lambda shot=shot: take(chromium, shot, taken))  # type: ignore[misc]
            size = keep(taken, asked.into)
        if asked.sheet:
            chromium.run(lambda: sheet(chromium, asked.into, asked.sheet))
    finally:
        chromium.close()
    print(f"{len(list(asked.into.glob('*.webp')))} pictures, {size:,} bytes, in {asked.into}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
