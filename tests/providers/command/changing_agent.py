"""A program that keeps its conversation under another id after every turn, and prints it, or not:

changing_agent.py [--from ID] [--as LINE]     the prompt on its input; prints LINE, where {id} stands for the new id
changing_agent.py --show ID                   ends with 0 when that conversation is there, with 44 when it is not
"""

import argparse
import json
import os
import sys
from pathlib import Path

HOME = Path(os.environ["COMMAND_HOME"])

parser = argparse.ArgumentParser()
parser.add_argument("--from", dest="origin")
parser.add_argument("--as", dest="line", default="session: {id}")
parser.add_argument("--show")
told = parser.parse_args()
if told.show:
    sys.exit(0 if (HOME / told.show).exists() else 44)
HOME.mkdir(exist_ok=True)
past = json.loads((HOME / told.origin).read_text(encoding="utf-8")) if told.origin else []
past.append(sys.stdin.read().rstrip("\n"))
id_ = f"turn-{len(past)}"
(HOME / id_).write_text(json.dumps(past), encoding="utf-8")
if told.origin:
    # What it has gone on from is of no use any more.
    (HOME / told.origin).unlink()
print(told.line.replace("{id}", id_), flush=True)
print(f"heard {', '.join(past)}", flush=True)
