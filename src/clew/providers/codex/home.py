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
        """Who pays, as far as the home tells. A key is known by its digest."""
        config = self._config
        provider = _table(_table(config, "model_providers"), str(config.get("model_provider", "openai")))
        named = provider.get("env_key")
        if isinstance(named, str):
            return self._key_in_environment((named,))
        kept = self._login
        tokens = _table(kept, "tokens")
        if tokens.get("account_id"):
            return AccountId(str(tokens["account_id"]))
        if kept.get("OPENAI_API_KEY"):
            return _by_digest(str(kept["OPENAI_API_KEY"]))
        return self._key_in_environment(_KEYS)

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

    def _key_in_environment(self, names: tuple[str, ...]) -> AccountId | None:
        found = next((self.environment[name] for name in names if self.environment.get(name)), None)
        return None if found is None else _by_digest(found)


def _by_digest(key: str) -> AccountId:
    return AccountId("api-key:" + hashlib.sha256(key.encode()).hexdigest()[:8])


def _table(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, Mapping) else {}
