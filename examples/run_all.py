"""Run the five examples one after the other; each asserts what it shows. One alone: python -m examples.NAME"""

import ast
import runpy
from pathlib import Path

EXAMPLES = (
    "timer_in_the_wrong_directory",
    "session_on_another_machine",
    "empty_session_after_a_restart",
    "the_latest_session_was_anothers",
    "heartbeat_that_dragged_the_past",
)


def story(name: str) -> str:
    source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


if __name__ == "__main__":
    for name in EXAMPLES:
        print(f"\n{'=' * 100}\n{name}: {story(name)}")
        runpy.run_module(f"examples.{name}", run_name="__main__")
    print(f"\n{len(EXAMPLES)} examples, all as expected")
