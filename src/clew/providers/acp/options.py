"""The options of an ACP agent:

    agent       the name of a preset: opencode, claude, codex, gemini or qwen
    missing     error codes by which it says that it has no such session, as in "-32002,-32001"
    list        "whole" if a session that is not on its list does not exist, "short" if it may exist
    history     "first" if it stores a prompt before it acts on it: then a prompt that is not in the history of a killed
                agent was never taken. Otherwise a person is asked what became of the prompt
    asks        "yes" if it asks before everything but reading; then all four modes can be expressed
    mode.read, mode.ask, mode.edit, mode.full
                its own mode for each mode of Clew; a mode without one is not offered

Without a preset, the program of the settings is its command line.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from clew.kernel import PermissionMode
from clew.ports.provider import Settings
from clew.programs.acp.agent import AS_ASKED, EVERYTHING, AcpAgent, ModeRule
from clew.programs.checks import check_options, home_name
from clew.programs.faults import Refused
from clew.providers.acp.presets import PRESETS

_KNOWN = frozenset({"agent", "missing", "list", "history", "asks"}) | {f"mode.{mode}" for mode in PermissionMode}

_LISTS = ("whole", "short")


def agent_of(settings: Settings) -> AcpAgent:
    options = settings.options
    check_options(options, _KNOWN, "An ACP agent")
    name = options.get("agent")
    if name is not None and name not in PRESETS:
        raise Refused(
            f"There is no preset {name!r}.", f"Use one of {', '.join(sorted(PRESETS))}, or name a command line."
        )
    if name is None and not settings.program:
        raise Refused(
            "No agent is named.", "Name a preset with `--option agent=NAME`, or put its command line after --."
        )
    agent = PRESETS[name] if name is not None else AcpAgent(Path(settings.program[0]).name, settings.program)
    return _with_options(agent, options)


def _with_options(agent: AcpAgent, options: Mapping[str, str]) -> AcpAgent:
    if "missing" in options:
        try:
            agent = replace(agent, missing=frozenset(int(code) for code in options["missing"].split(",") if code))
        except ValueError as fault:
            raise Refused(
                f"The option `missing` is {options['missing']!r}.", 'Write error codes, as in "-32002,-32001".'
            ) from fault
    if "list" in options:
        if options["list"] not in _LISTS:
            raise Refused(f"The option `list` is {options['list']!r}.", f"Write {' or '.join(_LISTS)}.")
        agent = replace(agent, list_is_whole=options["list"] == "whole", list_is_short=options["list"] == "short")
    if "history" in options:
        if options["history"] != "first":
            raise Refused(f"The option `history` is {options['history']!r}.", "Write first, or leave it out.")
        agent = replace(agent, keeps_first=True)
    if options.get("asks") == "yes":
        agent = replace(agent, modes=AS_ASKED)
    named = {mode: options[f"mode.{mode}"] for mode in PermissionMode if f"mode.{mode}" in options}
    if named:
        agent = replace(agent, modes={mode: _rule(mode, id_) for mode, id_ in named.items()})
    return agent


def _rule(mode: PermissionMode, id_: str) -> ModeRule:
    """Its own mode decides what it asks; Clew answers as its own mode demands."""
    match mode:
        case PermissionMode.READ:
            return ModeRule(id_)
        case PermissionMode.ASK | PermissionMode.EDIT:
            return ModeRule(id_, asks=True)
        case PermissionMode.FULL:
            return ModeRule(id_, EVERYTHING)


def home_of(settings: Settings) -> str:
    """The agent and the variables that locate its store; by default the user's own home."""
    return home_name(settings.options.get("agent") or " ".join(settings.program), settings)
