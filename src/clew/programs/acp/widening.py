"""Files of a project by which an agent is made to ask less than its mode demands: where one is, only full is kept."""

import json
import os
from pathlib import Path, PurePath

from clew.kernel import Directory, PermissionMode
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.tool import Tool
from clew.programs.faults import Refused
from clew.programs.project_files import find_files


def must_not_widen(agent: AcpAgent, mode: PermissionMode, directory: Directory) -> None:
    if mode is PermissionMode.FULL:
        return
    file = next(find_files(Path(directory.path), agent.obeys, alone=not agent.obeys_all_above), None)
    if file is not None:
        other = f", or use the provider {agent.instead}" if agent.instead else ""
        raise Refused(
            f"The mode {mode} cannot be kept: by {file} the project may tell {agent.name} not to ask.",
            f"Remove the file, or choose the mode full{other}.",
        )


def would_widen(agent: AcpAgent, tool: Tool) -> bool:
    """Whether a tool is about such a file, or may be: in no mode but full that is the agent's own to decide."""
    names = {PurePath(pattern).parts[0] for pattern in agent.obeys}
    if not names:
        return False
    if not tool.files:
        told = json.dumps(tool.said, default=str)
        return any(name in told for name in names)
    return any(not names.isdisjoint(parts) for file in tool.files for parts in _parts(file))


def _parts(file: str) -> tuple[tuple[str, ...], ...]:
    """As it is named, and where links lead."""
    try:
        return PurePath(file).parts, PurePath(os.path.realpath(file)).parts
    except (OSError, ValueError):
        return (PurePath(file).parts,)
