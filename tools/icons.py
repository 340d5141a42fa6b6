"""Draw the icons of the installed page as PNG from icon.svg, with the Chromium of the tests.

    python -m tools.icons                   write them into src/clew/web/static

A launcher cuts a maskable icon into any shape: its ground reaches the edges, and the drawing keeps away from them.
"""

import re
from pathlib import Path

from playwright.sync_api import sync_playwright

from tools.browser import chromium

STATIC = Path(__file__).resolve().parents[1] / "src" / "clew" / "web" / "static"
ICONS = {"icon-192.png": (192, False), "icon-512.png": (512, False), "icon-maskable-512.png": (512, True)}


def drawn(size: int, maskable: bool) -> str:
    """The SVG with these pixels."""
    svg = (STATIC / "icon.svg").read_text(encoding="utf-8").replace("<svg ", f'<svg width="{size}" height="{size}" ', 1)
    if not maskable:
        return svg
    svg = re.sub(r' rx="\d+"', "", svg)
    return svg.replace("<g ", '<g transform="translate(32 32) scale(.8) translate(-34 -32)" ', 1)


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium())
        for name, (size, maskable) in ICONS.items():
            page = browser.new_page(viewport={"width": size, "height": size})
            page.set_content(f"<style>body {{ margin: 0 }} svg {{ display: block }}</style>{drawn(size, maskable)}")
            page.screenshot(path=STATIC / name, omit_background=True)
        browser.close()


if __name__ == "__main__":
    main()
