"""docs/api-reference.md is what the code of the API says. tests/up/test_api_examples.py sends its examples."""

from dataclasses import fields

from clew.protocol.live import BeatView, ChangedView
from clew.protocol.views import LogView
from clew.server.router import BASE
from tools.api_examples import EXAMPLES
from tools.api_fields import MEANINGS
from tools.api_reference import PAGE, openapi, page

DESCRIBED = openapi()
CALLS = [f"{method.upper()} {path}" for path, methods in DESCRIBED["paths"].items() for method in methods]


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it again with `make reference`"


def test_every_call_has_an_example_and_every_example_a_call() -> None:
    assert {each.call for each in EXAMPLES} == {call.replace(f" {BASE}", " ") for call in CALLS}


def test_no_meaning_is_given_to_a_field_that_is_gone() -> None:
    shapes = {name: shape.get("properties", {}) for name, shape in DESCRIBED["components"]["schemas"].items()}
    there = {name for named in shapes.values() for name in named}
    # These are sent as live events alone, so no call of the document has them.
    there |= {
        *(f"{view.__name__}.{each.name}" for view in (BeatView, ChangedView, LogView) for each in fields(view)),
        *(f"{shape}.{name}" for shape, named in shapes.items() for name in named),
    }
    assert set(MEANINGS) - there == set()
