"""Drive a real agent program with the kernel: python kernel_quick_start.py THREAD DIRECTORY PROMPT [OPENED_IN]"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from clew import kernel as k

HOME, GUIDE, MACHINE = Path("guide-home").resolve(), k.ProviderName("guide"), k.MachineId("laptop")
SAYS = frozenset(k.LandingField) - {k.LandingField.MODEL, k.LandingField.ACCOUNT}
CAN = k.Capabilities(resume=True, reapply_mode=True, missing_signals=frozenset({"not-listed"}), reports=SAYS)
HERE = k.Here(MACHINE, k.runtime_id(MACHINE, GUIDE, str(HOME)), GUIDE, CAN, mode=k.PermissionMode.READ)


def call(method: str, **params: object) -> Any:
    print(json.dumps({"id": 1, "method": method, "params": params}), file=program.stdin, flush=True)
    while (said := json.loads(program.stdout.readline() if program.stdout else "")).get("id") != 1:
        print(said["params"]["update"].get("content", {}).get("text", ""), end="")
    return said["result"] if "result" in said else sys.exit(said["error"]["message"])


def wake(thread: str, place: k.Directory, prompt: str, opened_in: str) -> str:
    lane, book = k.lane_id(k.AgentId("ada"), k.ThreadId(thread)), HOME / f"{thread}.json"
    known = [k.value_from_record(k.Session, each) for each in json.loads(book.read_text() if book.exists() else "[]")]
    head = k.EntrySeq(max((session.seen for session in known), default=0) + 1)
    demand = k.coalesce([k.Wake(k.WakeId(f"wake-{head}"), lane, k.WakeReason.COMMENT, entries=(head,))])
    sources = k.gather(demand, lambda source: known if source is k.Source.LANE else [])
    own = k.Workspace(k.WorkspaceId(thread), k.WorkspaceKind.DIRECTORY, place)
    facts = k.PlaceFacts(agent_home=own, remembered=own)
    plan = k.decide(k.Situation(k.RunId(f"run-{head}"), lane, k.LaneScope(lane), HERE, demand, sources, head, facts))
    while plan.needs_probe:  # ask the program whether it still has the session
        there = plan.native_id in [each["sessionId"] for each in call("session/list")["sessions"]]
        plan = k.settle(plan, k.Probe(k.ProbeKind.FOUND_HERE if there else k.ProbeKind.MISSING, signal="not-listed"))
    print(k.headline(plan))
    if plan.outcome is k.Outcome.HOLD:
        return "not sent: try again later"
    opened = call(f"session/{'resume' if plan.session else 'new'}", sessionId=plan.native_id, cwd=opened_in)
    native = k.NativeId(opened.get("sessionId", plan.native_id))
    said = next(each for each in call("session/list")["sessions"] if each["sessionId"] == native)
    mode, turns = k.PermissionMode(opened["modes"]["currentModeId"]), said["_meta"]["turns"]
    check = k.verify(plan, k.Landing(native, k.Directory(said["cwd"]), mode, turns=turns))
    if not check.may_continue:  # the program did not open what was planned, so it gets no prompt
        return "\n".join(f"not sent: {difference.words}" for difference in check.differences)
    call("session/prompt", sessionId=native, prompt=[{"type": "text", "text": prompt}])
    made = (k.SessionId(native), len(known) + 1, lane, k.LaneScope(lane), GUIDE, HERE.runtime, place)
    session = replace(plan.session or k.Session(*made, k.Cursor(1, native), mode=mode), seen=head, turns=turns + 1)
    sessions = (*(each for each in known if each.id != session.id), session)
    book.write_text(json.dumps([k.value_to_record(k.Session, each) for each in sessions]))
    return f"\nsent: prompt {session.turns} of session {session.generation}"


thread, directory, prompt, *wrong = sys.argv[1:] if len(sys.argv) > 3 else sys.exit(__doc__)
os.environ["GUIDE_HOME"] = str(HOME)
with Popen([sys.executable, "-m", "clew.providers.guide.agent"], stdin=PIPE, stdout=PIPE, text=True) as program:
    print(wake(thread, k.Directory(str(Path(directory).resolve())), prompt, str(Path(*wrong or [directory]).resolve())))
