"""A home of Codex: where it is, whose account it uses, and what its own settings say."""

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from clew.kernel import AccountId, Directory
from clew.providers.codex.rules import allows

HOMES = frozenset({"CODEX_HOME", "HOME"})
"""The variables that say where it is."""

_KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")


def directory_at(path: str) -> Directory:
    return Directory(path, os.path.realpath(path))


@dataclass(frozen=True)
class Home:
    """Found by the environment that the program gets."""

    environment: Mapping[str, str]

    @cached_property
    def root(self) -> Path:
        named = self.environment.get("CODEX_HOME")
        place = Path(named) if named else Path(self.environment.get("HOME", "~")).expanduser() / ".codex"
        return Path(os.path.realpath(place))

    @property
    def account(self) -> AccountId | None:
        """The login that this home names, where that is what its model is asked with. A key names nobody."""
        named = _table(self._login, "tokens").get("account_id")
        return AccountId(str(named)) if named and self._asks_with_login and not self._kept_key else None

    @property
    def credential(self) -> str | None:
        """The key that its model is asked with, as a short digest; None where it is a login, or where there is none."""
        key = self._key
        return None if key is None else "api-key:" + hashlib.sha256(key.encode(errors="replace")).hexdigest()[:8]

    @property
    def lists_models(self) -> bool:
        """The program lists the models of its maker, whichever provider the home has chosen."""
        return bool(self._config.get("model_provider", "openai") == "openai")

    @property
    def workspace(self) -> dict[str, Any]:
        """What this home adds to the sandbox of a workspace."""
        kept = _table(self._config, "sandbox_workspace_write")
        return {
            "writableRoots": list(kept.get("writable_roots", [])),
            "networkAccess": bool(kept.get("network_access", False)),
            "excludeTmpdirEnvVar": bool(kept.get("exclude_tmpdir_env_var", False)),
            "excludeSlashTmp": bool(kept.get("exclude_slash_tmp", False)),
        }

    @property
    def standing_rules(self) -> Path | None:
        """A file of rules that let commands out of the sandbox in every mode, without asking, if there is one."""
        return next((file for file in sorted((self.root / "rules").glob("*.rules")) if allows(file)), None)

    @property
    def trusted(self) -> frozenset[Path]:
        """The projects that its person has told it to trust."""
        projects = _table(self._config, "projects")
        named = (place for place in projects if _table(projects, place).get("trust_level") == "trusted")
        return frozenset(Path(os.path.realpath(place)) for place in named)

    @property
    def project_roots(self) -> tuple[str, ...]:
        """By what it knows the top of a project; empty where this home says nothing of that."""
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
        """Whether the model is asked with what `codex login` keeps; a provider of the home's own has its own key."""
        provider = self._model_provider
        if provider.get("env_key") or provider.get("experimental_bearer_token"):
            return False
        return self.lists_models or bool(provider.get("requires_openai_auth"))

    @property
    def _kept_key(self) -> str | None:
        """It goes before a login that is kept beside it, unless the home says otherwise."""
        kept = self._login.get("OPENAI_API_KEY")
        return str(kept) if kept and self._login.get("auth_mode", "apikey") == "apikey" else None

    @property
    def _key(self) -> str | None:
        provider = self._model_provider
        if named := provider.get("env_key"):
            return self.environment.get(str(named)) or None
        if token := provider.get("experimental_bearer_token"):
            return str(token)
        if not self._asks_with_login or self.account is not None:
            return None
        return self._kept_key or next((key for name in _KEYS if (key := self.environment.get(name))), None)


def _table(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, Mapping) else {}
