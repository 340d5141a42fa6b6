"""The keys and logins of Codex: what it will ask its model with, and how a person gives it one."""

from clew.ports.logins import Logins
from clew.providers.codex.home import Home

_KEY = "OPENAI_API_KEY"


def logins_of(home: Home) -> Logins:
    """Its app server takes no key from its environment, except the one that the model's provider names."""
    place = f"CODEX_HOME={home.root} " if home.environment.get("CODEX_HOME") else ""
    named = home.key_variable
    if named is not None:
        return Logins(named if home.environment.get(named) else "", (named,))
    login = f"{place}codex login"
    return Logins(_used(home), (_KEY,), login, f"printenv {_KEY} | {login} --with-api-key")


def _used(home: Home) -> str:
    if not home.needs_login:
        return f"what {home.root / 'config.toml'} says"
    return f"the login in {home.root / 'auth.json'}" if home.has_login else ""
