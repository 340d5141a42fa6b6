"""`from clew.kernel import decide` is a supported API: it needs the standard library and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "src"

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from clew.kernel import decide
print(json.dumps({"callable": callable(decide), "path": sys.path[1:], "modules": sorted(sys.modules)}))
"""


def test_the_kernel_works_without_site_packages() -> None:
    # -I ignores the environment and the working directory; -S leaves site-packages off the path.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, str(SRC)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["callable"]
    assert not [entry for entry in seen["path"] if "site-packages" in entry]
    roots = {name.partition(".")[0] for name in seen["modules"]}
    assert roots - sys.stdlib_module_names - {"__main__"} == {"clew"}
    above = {name for name in seen["modules"] if name.startswith("clew.") and name.split(".")[1] != "kernel"}
    assert above == set()


def test_a_server_on_sqlite_loads_nothing_of_postgresql() -> None:
    """It takes 90 ms and 10 MB."""
    seen = "import clew.app.run_server, sys; sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", seen], check=False, timeout=60).returncode == 0
