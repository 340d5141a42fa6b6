"""Run the examples one after the other; each asserts what it shows. One alone: python -m examples.NAME"""

import ast
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = (
    "timer_in_the_wrong_directory",
    "session_on_another_machine",
    "empty_session_after_a_restart",
    "the_latest_session_was_anothers",
    "heartbeat_that_dragged_the_past",
)
QUICK_START = "kernel_quick_start"
WAKES = (
    ("issue-7", "maze", "Remember the number 7."),
    ("issue-7", "maze", "Which number was it?"),
    ("issue-7", "attic", "Which number was it?"),
    ("issue-8", "maze", "Hello.", "attic"),
)
"""The arguments of the quick start, as docs/kernel.md gives them; each is a process of its own."""


def story(name: str) -> str:
    source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def quick_start() -> list[str]:
    """What it prints for each wake, one after the other in one directory, here called as in docs/kernel.md."""
    with tempfile.TemporaryDirectory() as directory:
        for name in ("maze", "attic"):
            Path(directory, name).mkdir()
        script = Path(__file__).with_name(f"{QUICK_START}.py")
        printed = [
            subprocess.check_output([sys.executable, script, *arguments], cwd=directory, text=True)
            for arguments in WAKES
        ]
        return [each.replace(str(Path(directory).resolve()), "/tmp/labyrinth") for each in printed]


if __name__ == "__main__":
    print(f"{QUICK_START}: {story(QUICK_START)}\n")
    print("\n".join(quick_start()))
    for name in EXAMPLES:
        print(f"\n{'=' * 100}\n{name}: {story(name)}")
        runpy.run_module(f"examples.{name}", run_name="__main__")
    print(f"\n{len(EXAMPLES) + 1} examples, all as expected")
