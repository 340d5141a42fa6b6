"""How a program is used, by the options that its user sets:

    start       arguments of a turn in a new session, with {prompt} and {session}. Without {prompt} the prompt is
                written to the program's input. With {session} the program takes an id that Clew has chosen. The
                arguments for mode and model replace the word {options}, or go to the end. A prompt that begins with -
                is refused as an argument unless the word -- comes right before {prompt}
    resume      arguments of a turn in an existing session, with {session}; needs `probe`, and `session` or {session} in
                `start`
    session     a regular expression with one group that finds the session's id in a line of the output. Every turn is
                searched, and the first match counts: a program may continue under another id
    probe       arguments that end with status 0 if {session} exists, and with one of `missing` if it does not
    missing     those statuses, as in "44,45"
    model       arguments that choose {model}
    version     arguments that print its version
    id          the shape of a session's id, as a regular expression
    mode.read, mode.ask, mode.edit, mode.full
                arguments that make it keep that mode. Without any, the program can do anything, which is the mode full

Clew knows nothing else of the program.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from clew.kernel import PermissionMode
from clew.ports.provider import Settings
from clew.programs.checks import check_options, home_name
from clew.programs.faults import BadOptions, Refused

PROMPT, SESSION, MODEL, OPTIONS = "{prompt}", "{session}", "{model}", "{options}"
_KNOWN = ("start", "resume", "session", "probe", "missing", "model", "version", "id")
_MODES = {f"mode.{mode}": mode for mode in PermissionMode}
_SHAPE = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}"

Arguments = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    start: Arguments = ()
    resume: Arguments | None = None
    session: re.Pattern[str] | None = None
    probe: Arguments | None = None
    missing: frozenset[int] = frozenset()
    model: Arguments | None = None
    version: Arguments | None = None
    shape: str = _SHAPE
    modes: Mapping[PermissionMode, Arguments] = field(default_factory=lambda: {PermissionMode.FULL: ()})

    @property
    def chooses_id(self) -> bool:
        return any(SESSION in word for word in self.start)


def recipe_of(settings: Settings) -> Recipe:
    options = settings.options
    check_options(options, (*_KNOWN, *_MODES), "A command")
    if not settings.program:
        raise Refused("No program is named.", "Put the program and its arguments after --, as in `-- make test`.")
    modes = {mode: _words(options[name]) for name, mode in _MODES.items() if name in options}
    recipe = Recipe(
        start=_words(options.get("start", "")),
        resume=_words(options["resume"]) if "resume" in options else None,
        session=_pattern(options["session"], groups=1) if "session" in options else None,
        probe=_words(options["probe"]) if "probe" in options else None,
        missing=_statuses(options.get("missing", "")),
        model=_words(options["model"]) if "model" in options else None,
        version=_words(options["version"]) if "version" in options else None,
        shape=_pattern(options.get("id", _SHAPE), groups=None).pattern,
        modes=modes or {PermissionMode.FULL: ()},
    )
    if recipe.resume is not None and (recipe.probe is None or not (recipe.session or recipe.chooses_id)):
        raise Refused(
            "`resume` is set, but Clew could not learn the id of a session and find it again.",
            "Set `probe` as well, and either `session` or {session} in `start`.",
        )
    if recipe.resume is not None and not any(SESSION in word for word in recipe.resume):
        raise BadOptions(
            f"`resume` is {options['resume']!r}, without {{session}}: the program cannot know which session is meant.",
            "Put {session} where the program takes the id of a session.",
        )
    return recipe


def home_of(settings: Settings) -> str:
    """The command line and the variables that locate its store identify a home."""
    return home_name(" ".join(settings.program), settings)


def filled(arguments: Arguments, values: Mapping[str, str]) -> Arguments:
    """Each word stays one word, whatever is inserted."""
    for name, value in values.items():
        arguments = tuple(word.replace(name, value) for word in arguments)
    return arguments


def taken_for_option(template: Arguments, prompt: str) -> bool:
    """Whether the program could take the prompt for an option. Clew adds no `--`: not every program knows it."""
    words = pairwise(("", *template))
    return prompt.startswith("-") and any(word.startswith(PROMPT) and before != "--" for before, word in words)


def with_options(template: Arguments, options: Arguments) -> Arguments:
    if OPTIONS not in template:
        return (*template, *options)
    at = template.index(OPTIONS)
    return (*template[:at], *options, *template[at + 1 :])


def _words(text: str) -> Arguments:
    try:
        return tuple(shlex.split(text))
    except ValueError as fault:
        raise Refused(f"{text!r} cannot be split into arguments: {fault}.", "Quote it as in a shell.") from fault


def _pattern(text: str, groups: int | None) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as fault:
        raise Refused(f"{text!r} is no regular expression: {fault}.", "Correct it.") from fault
    if groups is not None and pattern.groups != groups:
        raise Refused(f"{text!r} has {pattern.groups} groups.", "Put exactly one group around the session's id.")
    return pattern


def _statuses(text: str) -> frozenset[int]:
    try:
        return frozenset(int(status) for status in text.split(",") if status.strip())
    except ValueError as fault:
        raise Refused(f"The option `missing` is {text!r}.", 'Write exit statuses, as in "44,45".') from fault
