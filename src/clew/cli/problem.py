"""What went wrong, on stderr: a line for people, or an object for programs with the names that the API has."""

import json
import sys

from clew.cli.telling import warn
from clew.ports.fault import Fault


def tell_problem(code: str, words: str, remedy: str = "", *, as_json: bool = False) -> None:
    if not as_json:
        warn(f"{words} {remedy}".strip() + f" [{code}]")
        return
    said = {"type": f"urn:clew:problem:{code}", "code": code, "detail": words, "remedy": remedy}
    # Half a character that was typed is written as an escape: this is to be read in any case.
    sys.stderr.write(f"{json.dumps(said)}\n")


def tell_fault(fault: Fault, *, as_json: bool = False) -> None:
    tell_problem(fault.code, fault.words, fault.remedy, as_json=as_json)
