"""A home of Codex: where it is, which account it uses, and what its settings say."""

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from clew.kernel import AccountId
from clew.programs.faults import CHECK_HOME, HomeFailed

AGENT = "Codex"
HOMES = frozenset({"CODEX_HOME", "HOME"})
"""The variables that locate the home."""


def make_home(root: Path) -> None:
    """Codex makes no home, and says little where it cannot write to one."""
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError as fault:
        raise HomeFailed(f"The home {root} of Codex is not a directory.", "Move it away, or name another.") from fault
    if not os.access(root, os.W_OK | os.X_OK):
        raise HomeFailed(f"The home {root} of Codex cannot be written to.", CHECK_HOME)


@dataclass(frozen=True)
class Home:
    """Located by the environment that the program gets."""

    environment: Mapping[str, str]

    @cached_property
    def root(self) -> Path:
        named = self.environment.get("CODEX_HOME")
        place = Path(named) if named else Path(self.environment.get("HOME", "~")).expanduser() / ".codex"
        return Path(os.path.realpath(place))

    @property
    def account(self) -> AccountId | None:
        """The account of the login, if the model is asked with a login. A key names no account."""
        named = _table(self._login, "tokens").get("account_id")
        return AccountId(str(named)) if named and self._asks_with_login and not self._kept_key else None

    @property
    def credential(self) -> str | None:
        """A short digest of the key that the model is asked with; None for a login, or without a key."""
        key = self._key
        return None if key is None else "api-key:" + hashlib.sha256(key.encode(errors="replace")).hexdigest()[:8]

    @property
    def key_variable(self) -> str | None:
        """The variable from which the chosen model provider takes its key, if it names one."""
        named = self._model_provider.get("env_key")
        return str(named) if named else None

    @property
    def needs_login(self) -> bool:
        """False for a model provider that uses a token from the settings, or no credential, such as a local model."""
        return self._asks_with_login

    @property
    def has_login(self) -> bool:
        return self._kept_key is not None or bool(_table(self._login, "tokens"))

    @property
    def lists_models(self) -> bool:
        """Codex lists OpenAI's models only, whichever model provider the home has chosen."""
        return bool(self._config.get("model_provider", "openai") == "openai")

    @property
    def workspace(self) -> dict[str, Any]:
        """What this home adds to the workspace-write sandbox."""
        kept = _table(self._config, "sandbox_workspace_write")
        return {
            "writableRoots": list(kept.get("writable_roots", [])),
            "networkAccess": bool(kept.get("network_access", False)),
            "excludeTmpdirEnvVar": bool(kept.get("exclude_tmpdir_env_var", False)),
            "excludeSlashTmp": bool(kept.get("exclude_slash_tmp", False)),
        }

    @property
    def trusted(self) -> frozenset[Path]:
        """The projects that the user has told Codex to trust."""
        projects = _table(self._config, "projects")
        named = (place for place in projects if _table(projects, place).get("trust_level") == "trusted")
        return frozenset(Path(os.path.realpath(place)) for place in named)

    @property
    def project_roots(self) -> tuple[str, ...]:
        """The names that mark the root of a project; empty where this home sets none."""
        named = self._config.get("project_root_markers")
        return tuple(map(str, named)) if isinstance(named, list) else ()

    @property
    def _config(self) -> dict[str, Any]:
        try:
            return tomllib.loads((self.root / "config.toml").read_text("utf-8"))
        except (OSError, ValueError):
            return {}

    @property
    def _login(self) -> dict[str, Any]:
        try:
            kept = json.loads((self.root / "auth.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    @property
    def _model_provider(self) -> Mapping[str, Any]:
        config = self._config
        return _table(_table(config, "model_providers"), str(config.get("model_provider", "openai")))

    @property
    def _asks_with_login(self) -> bool:
        """Whether the model is asked with what `codex login` stored; other model providers have their own key."""
        provider = self._model_provider
        if provider.get("env_key") or provider.get("experimental_bearer_token"):
            return False
        return self.lists_models or bool(provider.get("requires_openai_auth"))

    @property
    def _kept_key(self) -> str | None:
        """A stored key takes precedence over a stored login, unless the home says otherwise."""
        kept = self._login.get("OPENAI_API_KEY")
        return str(kept) if kept and self._login.get("auth_mode", "apikey") == "apikey" else None

    @property
    def _key(self) -> str | None:
        """The app server takes none from its environment but the one that the model provider names."""
        if named := self.key_variable:
            return self.environment.get(named) or None
        if token := self._model_provider.get("experimental_bearer_token"):
            return str(token)
        return self._kept_key if self._asks_with_login and self.account is None else None


def _table(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, Mapping) else {}
