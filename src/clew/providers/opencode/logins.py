"""The keys and logins of OpenCode: what it has for the models it can ask, and how a person gives it more."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from clew.ports.logins import Logins
from clew.providers.opencode.home import data, has_logins, key_variables

_KEYS = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "GROQ_API_KEY",
    "DEEPSEEK_API_KEY",
    "OPENCODE_API_KEY",
)
"""The variables of widely used models. It takes the key of every model provider that it knows."""

_CONFIGS = ("opencode.json", "opencode.jsonc", "config.json")
_IN_CONFIG = '"apiKey"'


def logins_of(environment: Mapping[str, str]) -> Logins:
    place = f"XDG_DATA_HOME={data(environment).parent} " if environment.get("XDG_DATA_HOME") else ""
    return Logins(_used(environment), _KEYS, f"{place}opencode auth login")


def _used(environment: Mapping[str, str]) -> str:
    variables = key_variables(environment)
    if variables:
        return ", ".join(variables)
    if has_logins(environment):
        return f"the logins in {data(environment) / 'auth.json'}"
    return next((f"a key in {file}" for file in _configs(environment) if _has_key(file)), "")


def _configs(environment: Mapping[str, str]) -> Iterator[Path]:
    if named := environment.get("OPENCODE_CONFIG"):
        yield Path(named)
    beneath = Path(environment.get("HOME", "/")) / ".config"
    root = Path(environment.get("XDG_CONFIG_HOME") or beneath) / "opencode"
    yield from (root / name for name in _CONFIGS)


def _has_key(file: Path) -> bool:
    """By its text: the file may have comments, which JSON has not."""
    try:
        return _IN_CONFIG in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
