"""The guide with a playbook: it acts on messages as the playbook says, so that people's messages read naturally.

The playbook is JSON in the actor's home: messages, each with a script in the guide's words and one more, `REPLY:`.
What follows that word is the answer, Markdown and several lines included. Other messages are followed as by the guide.
For the provider `acp`, which takes any program; the guide's own takes none.
"""

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from clew.providers.guide.agent import turn
from clew.providers.guide.agent.methods import Methods
from clew.providers.guide.agent.script import Script, asked_for, follow
from clew.providers.guide.memory import home_of

NAME = "actor"
_PLAYBOOK = "playbook.json"
_REPLY = re.compile(r"^REPLY:[ \t]*\n", re.MULTILINE)


def install(programs: Path, home: Path, playbook: Mapping[str, str]) -> None:
    """As the program `actor`, which acts by this playbook."""
    home.mkdir(parents=True, exist_ok=True)
    (home / _PLAYBOOK).write_text(json.dumps(playbook), encoding="utf-8")
    program = programs / NAME
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{Path(__file__).resolve()}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def acted(prompt: str, playbook: Mapping[str, str]) -> Script:
    """Of several messages, the last one that is in the playbook counts."""
    asked = asked_for(prompt)
    known = [message for message in playbook if message in asked]
    play = playbook[max(known, key=asked.rindex)] if known else asked
    script, *reply = _REPLY.split(play, maxsplit=1)
    return replace(follow(script), say=reply[0].strip()) if reply else follow(play)


def main() -> None:
    file = home_of() / _PLAYBOOK
    with patch.object(turn, "follow", lambda prompt: acted(prompt, json.loads(file.read_text(encoding="utf-8")))):
        asyncio.run(Methods(home_of()).serve())


if __name__ == "__main__":
    main()
