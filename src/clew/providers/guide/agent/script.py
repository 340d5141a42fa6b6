"""What a prompt tells the guide to do. Each of these stands on a line of its own:

    RUN: <command>          run it in a shell
    WRITE: <path> <text>    write a file
    SAY: <text>             answer with this
    THINK: <text>           think this first
    PLAN: <step>; <step>    show these steps
    SLOW: <seconds>         take that long to answer
    HANG                    begin to answer, then never go on
    CUT                     begin to answer, then end as in a crash
    FAIL: <status> [<when>] fail as a model would with that status of HTTP; <when> is the second a usage limit ends

Any other prompt gets a friendly answer. Of a prompt that quotes a whole thread, only the messages that are new are
followed: the others were followed before.
"""

import json
import re
from dataclasses import dataclass

_LINE = re.compile(r"^(?P<word>RUN|WRITE|SAY|THINK|PLAN|SLOW|FAIL):[ \t]*(?P<rest>.*?)[ \t]*$", re.MULTILINE)
# How a prompt of Clew fences quoted messages, and marks those that are to be acted on.
_FENCE = re.compile(r"^The text between the lines `--- begin (?P<mark>\w+) ---`", re.MULTILINE)
_NOW = "(you are asked for this now)"
_ALONE = re.compile(r"^(?P<word>HANG|CUT)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """With a `file`, `text` is written to it; otherwise `text` is a command."""

    text: str
    file: str | None = None


@dataclass(frozen=True)
class Script:
    steps: tuple[Step, ...] = ()
    say: str | None = None
    think: str = ""
    plan: tuple[str, ...] = ()
    seconds: float = 0.0
    fail: tuple[int, ...] = ()
    ends: str = ""


def asked_for(prompt: str) -> str:
    """The part of a prompt to act on: all of it, unless it quotes messages."""
    fence = _FENCE.search(prompt)
    if fence is None:
        return prompt
    mark = re.escape(fence["mark"])
    found = re.finditer(
        rf"^(?P<who>[^\n]*)\n--- begin {mark} ---\n(?P<text>.*?)\n--- end {mark} ---$", prompt, re.MULTILINE | re.DOTALL
    )
    return "\n".join(each["text"] for each in found if each["who"].endswith(_NOW))


def follow(prompt: str) -> Script:
    prompt = asked_for(prompt)
    lines = [(found["word"], found["rest"]) for found in _LINE.finditer(prompt)]
    values, alone = dict(lines), _ALONE.search(prompt)
    return Script(
        steps=tuple(_step(word, rest) for word, rest in lines if word in ("RUN", "WRITE")),
        say=values.get("SAY"),
        think=values.get("THINK", ""),
        plan=tuple(step.strip() for step in values.get("PLAN", "").split(";") if step.strip()),
        seconds=_number(values.get("SLOW", "")),
        fail=tuple(int(word) for word in values.get("FAIL", "").split() if word.isdigit()),
        ends=alone["word"] if alone else "",
    )


def answer(prompts: list[str], directory: str, mode: str, outputs: list[str]) -> str:
    """A friendly answer, and a line that proves which history the guide has."""
    first, last = (json.dumps(text[:60], ensure_ascii=False) for text in (prompts[0], prompts[-1]))
    saw = f"Prompts that I remember: {len(prompts)}, from {first} to {last}."
    if outputs:
        return f"TOOL SAID: {outputs[-1].strip()[-600:]}\n{saw}"
    return (
        "I am the guide: I follow a script, so Clew can be tried without an account.\n"
        f"I work in {directory}, in the mode {mode}; this is prompt {len(prompts)} of our conversation.\n"
        "Tell me `RUN: ls`, `WRITE: notes.txt hello`, `THINK: why`, `SLOW: 5` or `SAY: done`, each on its own line.\n"
        f"{saw}"
    )


def pieces(text: str, count: int = 10) -> list[str]:
    size = max(1, -(-len(text) // count))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _step(word: str, rest: str) -> Step:
    first, _, after = rest.partition(" ")
    return Step(rest) if word == "RUN" else Step(after, first)


def _number(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0
