"""Wrong command lines at a real server: each answer names the wrong thing and the right one, and nothing is changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from clew.cli.client import Server
from tests.cli.kit import Said, here
from tests.cli.test_end_to_end import done, up
from tests.cli.wrong import INSIDE, Row, in_order, judge, typed
from tests.workspaces.kit import repository

# One server for all of them.
pytestmark = pytest.mark.xdist_group("wrong-lines")

POLICIES = {
    "unclosed": "{",
    "a-list": "[]",
    "unknown": '{"limts": {}}',
    "unknown-limit": '{"limits": {"turms": 5}}',
    "negative": '{"limits": {"turns": -1}}',
    "a-word": '{"limits": {"turns": "many"}}',
    "a-half": '{"limits": {"turns": 1.5}}',
    "true": '{"limits": {"turns": true}}',
    "a-number": '{"limits": 5}',
    "twice": '{"limits": {"turns": 50, "turns": 5}}',
    "endless": '{"limits": {"age": 1e400}}',
    "a-choice": '{"on_model_change": "ask"}',
    "empty": "",
    "good": "{}",
}


@dataclass(frozen=True)
class Scene:
    data: Path
    place: Path

    def state(self) -> list[bytes]:
        """What a wrong line must leave as it is."""
        server = Server(self.data)
        paths = ("/projects", "/threads", "/runs", "/sessions", "/workspaces")
        return [server.get("/agents", {"removed": "true"}), *map(server.get, paths)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    place = tmp_path_factory.mktemp("wrong")
    data = place / "data"
    repository(place / "repo")
    (place / "plain").mkdir()
    (place / "file").write_text("text")
    for name, text in POLICIES.items():
        (place / f"{name}.json").write_text(text)
    with up(data):
        for name in ("ada", "gone"):
            done(data, "agent", "add", name, "--provider", "guide", "--mode", "full")
        done(data, "project", "add", "web", place / "repo")
        new = ("issue", "new", "First", "--body", "WRITE: notes.txt hello", "--project", "web", "--assign", "ada", "-w")
        done(data, *new)
        done(data, "chat", "guide", "--no-project", "--once", "hello")
        for title in ("Second", "Third"):
            done(data, "issue", "new", title)
        done(data, "issue", "close", "3")
        done(data, "agent", "remove", "gone")
        yield Scene(data, place)


@pytest.fixture
def ask(scene: Scene, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator["Ask"]:
    monkeypatch.setenv("CLEW_DATA", str(scene.data))
    monkeypatch.delenv("CLEW_DATABASE", raising=False)
    monkeypatch.chdir(scene.place)
    before = scene.state()
    yield Ask(scene, capfd)
    assert scene.state() == before


@dataclass(frozen=True)
class Ask:
    scene: Scene
    capfd: pytest.CaptureFixture[str]

    def __call__(self, line: str | list[str]) -> Said:
        return here(self.capfd, *typed(line, HERE=str(self.scene.place)))


AGENTS: list[Row] = [
    ("agent show adda", "There is no agent 'adda'. Did you mean ada?"),
    ("agent show ADA", "There is no agent 'ADA'. Did you mean ada?"),
    ("agent show ' ada'", "Did you mean ada?"),
    ("agent show zzzzzz", "There is no agent 'zzzzzz'. There is ada, guide."),
    ("agent edit adda --mode read", "Did you mean ada?"),
    ("agent pause adda", "Did you mean ada?"),
    ("agent resume gome", "Did you mean gone?"),
    ("agent pause gone", "gone was removed; it is woken by nothing. Bring it back with `clew agent resume gone`."),
    ("agent test adda", "Did you mean ada?"),
    ("agent remove adda", "Did you mean ada?"),
    ("agent remove ada", "ada has open issues: issue-1. … `clew issue assign`, or close it with `clew issue close`."),
    ("agent add ada --provider guide", "There is already an agent 'ada'. Choose another name"),
    ("agent add gone --provider guide", "'gone' was removed; … `clew agent resume gone`"),
    ("agent add 'Ada L' --provider guide", "'Ada L' cannot be the name of an agent. … such as ada-l."),
    ("agent add ../x --provider guide", "'../x' cannot be the name of an agent."),
    (["agent", "add", "\x1b[31mred", "--provider", "guide"], r"'\x1b[31mred' cannot be the name of an agent."),
    (["agent", "add", "x" * 73, "--provider", "guide"], "x'… cannot be the name of an agent. Use up to 40"),
    ("agent add x --provider guid", "There is no provider 'guid'. Use one of: acp, claude, codex, command, guide"),
    ("agent add x --provider guide --max-parallel 0", "1 to 100 runs at once (got 0)."),
    ("agent add x --provider guide --every 5s", "must be between 15 s and 366 d (got 5 s)."),
    ("agent add x --provider guide --every 400d", "between 15 s and 366 d (got 400 d)."),
    ("agent add x --provider guide --cron 'every day'", "does not have five fields. Give five, as in `0 9 * * 1-5`"),
    ("agent add x --provider guide --cron '61 * * * *'", "'61 * * * *' is not a cron line: Bad minute."),
    ("agent add x --provider guide --every 1h --zone Mars/Olympus", "no time zone 'Mars/Olympus'. … Europe/Berlin"),
    ("agent add x --provider guide --every 1h --thread issue-99", "no thread 'issue-99'. The newest is issue-3"),
    ("agent edit ada --isolated", "The agent has no heartbeat to change. Give it an interval or a cron line."),
    ("agent add x --provider guide --env 'A B=c'", "'A B' cannot be the name of an environment variable."),
    ("agent edit ada --remove-env NOPE", "ada has no variable 'NOPE'. It has none."),
    ("agent add x --provider guide --home GUIDE_HOME=/nowhere", "/nowhere does not exist … --create-home"),
    ("agent add x --provider guide --option speed=9", "The guide has no option speed."),
    ("agent add x --provider guide -- ls", "The guide takes no program"),
    ("agent add x --provider command", "No program is named. Put the program and its arguments after --"),
    ("agent add x --provider command -- /no/such/program", "/no/such/program was not found: install it, or name"),
    ("agent add x --provider acp", "No agent is named. Name a preset with `--option agent=NAME`"),
]

PROJECTS: list[Row] = [
    ("project show wbe", "There is no project 'wbe'. Did you mean web?"),
    ("project add web HERE/repo", "There is already a project 'web'."),
    ("project add Web HERE/repo", "'Web' cannot be the name of a project. … such as web."),
    ("project add p /nowhere/at/all", "There is nothing at /nowhere/at/all."),
    ("project add p HERE/file", "HERE/file is a file. Name the project's directory."),
    ("project add p HERE/plain", "HERE/plain is not a git repository. Run git init there, or … --plain."),
    ("project add p HERE/repo/.git", "is a bare repository, or inside a git directory. Name a checkout"),
    ("project add p HERE/repo --base nope", "has no branch 'nope'. Name one that exists ("),
    ("project add p HERE/repo --setup ''", "A setup command is empty (''). Leave it out."),
    (["project", "add", "p", "x" * 5000], "cannot be a path: File name too long."),
    ("project edit web --base nope", "has no branch 'nope'."),
    ("project edit web --path /nowhere", "There is nothing at /nowhere."),
    ("project remove web", "web is the project of issue-1, and stays"),
]

ISSUES: list[Row] = [
    (["issue", "new", "x" * 301], "The title has 301 characters; the limit is 300. Put the rest into the text."),
    ("issue new T --project wbe", "Did you mean web?"),
    ("issue new T --assign adda", "Did you mean ada?"),
    ("issue new T --assign gone", "The agent was removed; … `clew agent resume gone` first"),
    ("issue show 99", "There is no thread 'issue-99'. The newest is issue-3"),
    ("issue show isue-1", "There is no thread 'isue-1'. Did you mean issue-1?"),
    ("issue show Issue-1", "Did you mean issue-1?"),
    ("issue show abc", "There is no thread 'abc'. Name one like issue-3, chat-1 or own-ada"),
    ("issue show run-1", "run-1 is a run, not a thread. `clew runs show run-1` shows its thread."),
    ("issue show own-nobody", "There is no agent 'nobody'."),
    ("issue assign 1 adda", "Did you mean ada?"),
    ("issue assign chat-1 ada", "chat-1 is not an issue, so it cannot be assigned."),
    ("issue assign 3 ada", "Thread issue-3 is closed, so no agent is woken in it. … `clew issue reopen issue-3`."),
    ("issue assign 1 guide --from nope", "web has no branch 'nope'. Name a branch of it, an agent of the thread"),
    ("issue assign 2 ada --from base", "issue-2 has no project, so no branch is made. Leave --from out."),
    ("issue assign 1 ada --from base", "ada works in issue-1 on clew/issue-1-first already. Leave --from out"),
    ("issue comment 1 hi --to guide --from nope", "web has no branch 'nope'."),
    ("issue comment 3 hi", "issue-3 is closed … `clew issue reopen issue-3`."),
    ("issue edit 1 --project wbe", "Did you mean web?"),
    ("issue edit own-ada --title x", "own-ada is an agent's own thread."),
]

MESSAGES: list[Row] = [
    ("say caht-1 hi", "There is no thread 'caht-1'. Did you mean chat-1?"),
    ("say github:acme/none hi", "There is no thread for github:acme/none yet. … --subject github:acme/none`."),
    ("say GitHub:x hi", "'GitHub' cannot be the source of a subject … github:acme/app#12."),
    ("say github: hi", "'' cannot be the name of a subject"),
    ("say chat-1 hi --to adda", "Did you mean ada?"),
    ("say chat-1 hi --resume run-99", "There is no run 'run-99'. The newest is run-2"),
    ("say chat-1 hi --resume run-1", "run-1 is ada's in issue-1. A conversation continues in its own thread"),
    ("say chat-1 hi --key ''", "'' cannot be a key: one has 1 to 200 characters"),
    ("wake adda", "Did you mean ada?"),
    ("wake guide hi --thread chat-99", "There is no thread 'chat-99'. The newest is chat-1"),
    ("wake guide hi --subject nonsense", "'nonsense' is not a subject: it has no colon."),
    ("wake guide hi --priority 5000", "A priority must be between -1000 and 1000 (got 5000)."),
    ("chat gone --once hi", "gone was removed, so it would not answer. `clew agent resume gone` first"),
    ("chat --once hi", "There are several agents: ada, guide. Choose one: `clew chat NAME`."),
    ("chat guide --project wbe --once hi", "Did you mean web?"),
]

WORK: list[Row] = [
    ("diff chat-1", "chat-1 has no project … `clew issue edit chat-1 --project NAME`."),
    ("diff 1 --agent guide", "'guide' has no worktree in issue-1. Agents that have one: ada."),
    ("diff run-99", "There is no run 'run-99'."),
    ("diff 1 --run run-2", "run-2 is guide's in chat-1. Try `clew diff chat-1 --run run-2`."),
    ("diff 1 -- ../../etc/passwd", "'../../etc/passwd' is outside the project. Give a path relative to"),
    ("merge 1", "has changes that are in no commit: notes.txt. Commit them with `clew commit issue-1"),
    ("merge issue-2", "issue-2 has no project"),
    ("checkout 1 --done", "issue-1 is not checked out. Check it out with `clew checkout issue-1`."),
    ("workspaces clean issue-99", "is not a workspace of Clew's, so nothing was removed."),
    ("workspaces accept HERE/repo", "HERE/repo is no workspace of Clew's."),
    ("release chat-9", "There is no thread 'chat-9'. The newest is chat-1"),
]

RUNS: list[Row] = [
    ("cancel run-99", "There is no run 'run-99'. The newest is run-2"),
    ("cancel wk_nope", "There is no wake 'wk_nope'. `clew queue THREAD` lists those that wait."),
    ("cancel issue-2", "issue-2 has no runs yet."),
    ("interrupt rn_", "Several runs begin with 'rn_': run-1, run-2. Give more of the id, or its number."),
    ("retry run-1", "run-1 has succeeded. Send a new message with `clew say issue-1 TEXT`."),
    ("retry run-1 --taken", "It is known what happened to every prompt in issue-1"),
    ("runs --thread chat-9", "The newest is chat-1"),
    ("runs --agent adda", "Did you mean ada?"),
    ("why nope", "There is no run and no wake 'nope'. Give a run (run-17), a thread (issue-3)"),
    ("why github:a/b", "There is no thread for github:a/b yet."),
    ("approvals allow ap_1", "There is no approval 'ap_1'. See them with `clew approvals`."),
    ("thread overlap issue-2 queue", "issue-2 has no agent. Name one: --agent NAME."),
    ("adopt chat-1 abc", "No agent on this machine has a session 'abc'. See `clew sessions --found`."),
    ("adopt chat-1 abc --runtime nope", "There is no runtime 'nope'. See them with `clew runtimes`."),
]

SETTINGS: list[Row] = [
    ("policy show --agent adda", "Did you mean ada?"),
    ("policy set nope.json --agent ada", "nope.json cannot be read: No such file or directory."),
    ("policy set plain --agent ada", "plain cannot be read: Is a directory."),
    ("policy set unclosed.json --agent ada", "unclosed.json is not JSON: … Fix it, and try again."),
    ("policy set a-list.json --agent ada", "a-list.json does not contain a policy."),
    ("policy set unknown.json --agent ada", "policy: 'limts' is not a field (did you mean limits?)."),
    ("policy set unknown-limit.json --agent ada", "policy.limits: 'turms' is not a field (did you mean turns?)."),
    ("policy set negative.json --agent ada", "policy.limits.turns must be 1 or more (got -1)."),
    ("policy set a-word.json --agent ada", "policy.limits.turns: 'many' is not a whole number."),
    ("policy set a-half.json --agent ada", "policy.limits.turns: 1.5 is not a whole number."),
    ("policy set true.json --agent ada", "policy.limits.turns: true is not a whole number."),
    ("policy set a-number.json --agent ada", "policy.limits: 5 is not an object."),
    ("policy set twice.json --agent ada", "twice.json has the field turns twice."),
    ("policy set endless.json --agent ada", "endless.json is not JSON: 1e400 is not a number"),
    ("policy set a-choice.json --agent ada", "policy.on_model_change: 'ask' is none of follow, reseed."),
    ("policy set empty.json --agent ada", "empty.json is not JSON"),
    ("replay --policy negative.json", "policy.limits.turns must be 1 or more (got -1)."),
    ("replay --policy good.json --agent adda", "Did you mean ada?"),
    ("up --port 0", "HERE/data is in use by process"),
    ("db upgrade", "is held by process"),
    ("db backup HERE/file", "HERE/file already exists. … --force."),
    ("db restore HERE/file --database HERE/new.db", "HERE/file is damaged or not a database"),
    ("db restore HERE/nope.db --database HERE/new.db", "There is no file HERE/nope.db."),
    ("db restore HERE/data/clew.db --database HERE/data/clew.db --force", "is the database itself."),
    ("db check --database HERE/nope.db", "There is no database at HERE/nope.db."),
    ("db upgrade --database HERE/plain", "HERE/plain is a directory."),
    ("db check --database ftp://x", "'ftp://x' is not the address of a database that Clew can use."),
    ("threads --data HERE/nowhere", "there is no data directory HERE/nowhere. Correct --data or CLEW_DATA"),
]

ROWS = [*AGENTS, *PROJECTS, *ISSUES, *MESSAGES, *WORK, *RUNS, *SETTINGS]


@pytest.mark.parametrize(("line", "words"), ROWS, ids=lambda value: str(value)[:60])
def test_a_wrong_line_is_answered_with_what_is_right(ask: Ask, line: str | list[str], words: str) -> None:
    judge(ask(line), 1, words.replace("HERE", str(ask.scene.place)))


VALUES: list[Row] = [
    ("agent show ''", "'' is not a name or an id: it is empty."),
    ("agent show a/b", "'a/b' is not a name or an id. Names have no slash."),
    (["agent", "show", "half\udcff"], "The name is not valid UTF-8."),
    (["agent", "show", "x" * 300], "it has 300 characters. Give a shorter one."),
    ("agent add '' --provider guide", "The name is empty. Give a name."),
    ("agent add x --provider ''", "The provider is empty. Give a provider."),
    ("agent add x --provider guide --every 5min", "'5min' is not a duration. Write it like 45s, 30m"),
    ("agent add x --provider guide --every 0m", "more than 0 and at most 100 years (got 0m)."),
    ("agent add x --provider guide --env ''", "--env names no variable. Write --env NAME"),
    ("agent add x --provider guide --env A=1 --env A=2", "--env names A twice."),
    ("project add p ''", "The path is empty. Name a directory."),
    ("project add p '~no-such-user/x'", "~no-such-user/x names no directory: there is no such user."),
    (["project", "add", "p", "/tmp/half\udcff"], "What you typed is not valid UTF-8."),
    ("issue list --state opne", "--state cannot be 'opne'. Use one of: open, closed, all. Did you mean open?"),
    ("issue edit 1 --title ''", "The title is empty."),
    ("issue edit 1 --body ' '", "The body is empty."),
    ("issue edit 1 --project ''", "The project is empty."),
    (["say", "chat-1", "hi", "--to", "x\udcff"], "What you typed is not valid UTF-8."),
    ("diff 1 -- ''", "The path is empty. Give a path."),
    ("commit 1 -m ' '", "The message is empty."),
    ("runs --state flying", "--state cannot be 'flying'. Use one of: queued, held"),
    ("threads --kind isue", "--kind cannot be 'isue'. Use one of: issue, chat, own, subject. Did you mean issue?"),
    ("approvals --state ''", "--state cannot be ''. Use one of: pending"),
    ("usage --since yesterday", "'yesterday' is not a duration."),
    ("agent add x --provider claude --home /srv/x", "takes NAME=VALUE, not '/srv/x'. … CLAUDE_CONFIG_DIR for claude"),
    ("db backup HERE/plain", "HERE/plain is a directory. Name a file."),
    ("db backup ''", "The name of the file is empty."),
    ("runs --limit 0", "--limit cannot be 0. Give a number from 1 to 500."),
    ("issue show 1 --last 501", "--last cannot be 501."),
    ("up --grace -1", "--grace must be 0 seconds or more (got -1)."),
    ("up --public foo", "'foo' is not the address of a site. Write it like https://"),
    ("replay --policy good.json --since foo", "'foo' is not a duration."),
    ("agent edit ada --add-env '=x'", "--add-env takes NAME=VALUE, not '=x'."),
    (
        "agent edit ada --env NOSUCHVAR",
        "NOSUCHVAR is not set in this shell. Set it first, or write --env NOSUCHVAR=VALUE.",
    ),
]


@pytest.mark.parametrize(("line", "words"), VALUES, ids=lambda value: str(value)[:60])
def test_a_value_that_can_never_be_right_is_a_usage_error(ask: Ask, line: str | list[str], words: str) -> None:
    judge(ask(line), 2, words.replace("HERE", str(ask.scene.place)))


TOO_LATE: list[Row] = [
    ("cancel run-1", "run-1 has ended already: succeeded."),
    ("cancel issue-1", "run-1 has ended already: succeeded."),
    ("interrupt run-1", "run-1 has ended already: succeeded. There is nothing to interrupt."),
]


@pytest.mark.parametrize(("line", "words"), TOO_LATE, ids=lambda value: str(value)[:60])
def test_what_comes_too_late_is_said_and_fails(ask: Ask, line: str, words: str) -> None:
    said = ask(line)
    assert (said.status, said.err) == (1, "")
    assert in_order(words, said.out)
    assert INSIDE.search(said.out) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("issue close 3", "issue-3 is closed already."),
        ("issue reopen 1", "issue-1 is open already."),
        ("issue assign 1 ada", "issue-1 is assigned to ada already; it was not woken again."),
        ("release issue-2", "No session of issue-2 is kept open."),
    ],
)
def test_what_is_so_already_is_no_failure_and_is_said(ask: Ask, line: str, words: str) -> None:
    said = ask(line)
    assert said.status == 0, said
    assert words in said.out
