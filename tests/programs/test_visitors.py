"""Visitors: a program that a person started for a session is seen by its command line."""

import subprocess
import time
import uuid
from pathlib import Path

import pytest

from clew.programs.visitors import opened_by_command

PATIENCE = 30.0


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the system has no /proc")
def test_a_program_that_was_started_for_a_session_is_seen_until_it_ends(tmp_path: Path) -> None:
    program, wanted = tmp_path / "codex", str(uuid.uuid4())
    program.write_text("#!/bin/sh\nread line\n")
    program.chmod(0o755)
    assert not opened_by_command("codex", wanted)
    process = subprocess.Popen([program, "resume", wanted], stdin=subprocess.PIPE)
    try:
        limit = time.monotonic() + PATIENCE
        while not opened_by_command("codex", wanted):
            assert time.monotonic() < limit
            time.sleep(0.01)
        assert not opened_by_command("codex", str(uuid.uuid4()))
        assert not opened_by_command("claude", wanted)
    finally:
        process.communicate(timeout=PATIENCE)
    assert not opened_by_command("codex", wanted)
