"""What an agent's own store no longer has is told again."""
import os, json
from pathlib import Path
import pytest
from tests.providers.rig import Rig, Seen
from tests.story.kit import House, hire, repository

@pytest.mark.parametrize("warm", [True, False])
def test_x(rig: Rig, home: House, tmp_path: Path, warm) -> None:
    hire(home, rig, "edit")
    home.post("/projects", {"name": "maze", "source": str(repository(tmp_path / "maze"))})
    page = home.post("/issues", {"title": "A door", "body": "FIRST WORD", "project": "maze", "assignee": "ada"})
    ref = page["thread"]["ref"]
    page = home.quiet(ref)
    native = home.get("/sessions")[0]["native_id"]
    print(native, home.get("/sessions"))
    if not warm:
        home.down()
    if rig.name == "opencode":
        import subprocess
        s = rig.settings("a")
        print(subprocess.run([*s.program, "session", "delete", native], env={"PATH": os.environ["PATH"], **s.home, **s.environment}, cwd=page["lanes"][0]["directory"], capture_output=True, text=True))
    else:
        files = [p for p in rig.root.rglob(f"*{native}*")]
        print(files)
        for f in files:
            if f.is_file(): f.unlink()
    if not warm:
        home.up()
    for i in range(2):
        page = home.say(ref, f"Word {i}.\nRUN: pwd")
        print(page["entries"][-1]["text"], page["thread"])
        run = page["runs"][0]
        print(run)
        print("FIRST heard", "FIRST WORD" in rig.heard())
        why = home.get(f"/why/{run['id']}")
        print(why["headline"], json.dumps(why["decisions"], indent=1) if i == 0 else "")
        if i == 0:
            home.down(); home.up()
    assert 0
