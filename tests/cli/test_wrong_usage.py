"""Command lines that cannot be understood: the answer names the wrong word and the right one, and nothing is asked."""

import pytest

from tests.cli.kit import here
from tests.cli.stub import Stub
from tests.cli.wrong import Row, judge, typed

COMMANDS: list[Row] = [
    ("agnt list", "Unknown command 'agnt'. Did you mean `clew agent`?"),
    ("isue list", "'isue'. Did you mean `clew issue`?"),
    ("lgos issue-1", "Did you mean `clew logs`?"),
    ("Threads", "Did you mean `clew threads`?"),
    ("frobnicate", "Unknown command 'frobnicate'. See `clew --help`."),
    ("--frob", "Unknown option: --frob."),
    ("--data /x runs", "--data goes after the command. For example `clew runs --data DIRECTORY`."),
    ("policy show ada", "Unexpected argument: 'ada'. For an agent: `clew policy show --agent ada`."),
    ("agent lst", "'lst'. Did you mean `clew agent list`? See `clew agent --help`."),
    ("project delete web", "Unknown command 'delete'. Did you mean `clew project remove`?"),
    ("project burn web", "Unknown command 'burn'. Use one of: add, list, show, edit, remove."),
    ("issue create T", "Did you mean `clew issue new`?"),
    ("issue delete 1", "Did you mean `clew issue close`?"),
    ("issue 1", "Unknown command '1'. Did you mean `clew issue show 1`?"),
    ("agent new x", "Did you mean `clew agent add`?"),
    ("agent ls", "Did you mean `clew agent list`?"),
    ("runs list", "Unknown command 'list'. Did you mean `clew runs`?"),
    ("approvals ls", "Did you mean `clew approvals`?"),
    ("start", "Unknown command 'start'. Did you mean `clew up -d`?"),
    ("version", "Did you mean `clew --version`?"),
    ("help", "Did you mean `clew --help`?"),
    ("login", "Did you mean `clew doctor`?"),
    ("issue opne x", "Did you mean `clew issue reopen`?"),
    ("approvals alow x", "Unknown command 'alow'. Did you mean `clew approvals allow`?"),
    ("runs shwo run-1", "Unknown command 'shwo'. Did you mean `clew runs show`?"),
    ("runs run-1", "Unknown command 'run-1'. Did you mean `clew runs show run-1`?"),
    ("thread list", "Unknown command 'list'. Did you mean `clew threads`?"),
    ("workspaces clear", "Did you mean `clew workspaces clean`?"),
    ("policy get --agent ada", "Did you mean `clew policy show`?"),
    ("db restor x", "Did you mean `clew db restore`?"),
    ("service start", "Unknown command 'start'. Did you mean `clew up -d`?"),
]

MISSING: list[Row] = [
    ("agent show", "NAME is missing. Type `clew agent show NAME`."),
    ("agent add", "NAME is missing. Type `clew agent add NAME --provider PROVIDER`."),
    ("agent add x", "--provider is missing. Add --provider with its value."),
    ("agent add x --provider", "--provider needs a value."),
    ("agent test", "Type `clew agent test NAME`."),
    ("project add web", "PATH is missing. Type `clew project add NAME PATH`."),
    ("issue new", "TITLE is missing. Type `clew issue new TITLE`."),
    ("issue show", "ISSUE is missing."),
    ("issue comment 1", "TEXT is missing. Type `clew issue comment ISSUE TEXT`."),
    ("say chat-1", "TEXT is missing. Type `clew say THREAD TEXT`."),
    ("wake", "AGENT is missing. Type `clew wake AGENT`."),
    ("diff", "THREAD is missing. Type `clew diff THREAD`."),
    ("commit chat-1", "--message is missing."),
    ("cancel", "RUN|THREAD|WAKE is missing."),
    ("thread show", "THREAD is missing. Type `clew thread show THREAD`."),
    ("thread overlap chat-1", "POLICY is missing. Type `clew thread overlap THREAD POLICY`."),
    ("logs", "RUN|THREAD is missing."),
    ("approvals answer ap_1", "Type `clew approvals answer APPROVAL TEXT`."),
    ("adopt chat-1", "SESSION is missing. Type `clew adopt THREAD SESSION`."),
    ("replay", "--policy is missing."),
    ("policy set", "POLICY is missing."),
    ("workspaces accept", "THREAD|DIRECTORY is missing."),
    ("db backup", "FILE is missing. Type `clew db backup FILE`."),
    ("completion", "SHELL is missing. Type `clew completion SHELL`."),
    ("runs --limit", "--limit needs a value. Write it after --limit."),
    ("usage --since -3d", "--since needs a value. One that begins with a hyphen is written --since=-3d."),
]

VALUES: list[Row] = [
    ("completion tcsh", "SHELL cannot be 'tcsh'. Use one of: bash, zsh, fish."),
    ("usage --by week", "--by cannot be 'week'. Use one of: agent, project, day."),
    ("agent add x --provider guide --mode raed", "--mode cannot be 'raed'. … Did you mean read?"),
    ("agent add x --provider guide --mode READ", "'READ'. Use one of: read, ask, edit, full. Did you mean read?"),
    ("agent edit ada --mode root", "--mode cannot be 'root'. Use one of: read, ask, edit, full."),
    ("agent edit ada --across-accounts maybe", "--across-accounts cannot be 'maybe'. Use one of: yes, no."),
    ("project add web . --mode-limit fll", "--mode-limit cannot be 'fll'. … Did you mean full?"),
    ("project edit web --mode-limit none", "--mode-limit cannot be 'none'."),
    ("thread overlap chat-1 stear", "POLICY cannot be 'stear'. … Did you mean steer?"),
    ("up --on-stop never", "--on-stop cannot be 'never'. Use one of: finish, interrupt."),
    ("runs --limit ten", "--limit takes a whole number, not 'ten'."),
    ("runs --limit 1.5", "--limit takes a whole number, not '1.5'."),
    ("thread show chat-1 --last 1e2", "--last takes a whole number, not '1e2'."),
    ("agent add x --provider guide --max-parallel 1e3", "--max-parallel takes a whole number, not '1e3'."),
    ("wake ada hi --priority high", "--priority takes a whole number, not 'high'."),
    ("up --port 1.5", "--port takes a whole number, not '1.5'."),
    ("up --grace soon", "--grace takes a number, not 'soon'."),
]

WORDS: list[Row] = [
    ("say chat-1 hi there", "Unexpected argument: 'there'. Put a text of several words in quotes."),
    ("chat ada hello", "'hello'. Say something with --once: `clew chat AGENT --once TEXT`."),
    ("issue assign 1 ada cody", "Unexpected argument: 'cody'. See `clew issue assign --help`."),
    ("approvals forget issue-1 ls", "Unexpected argument: 'ls'. See `clew approvals forget --help`."),
    ("issue new Login page", "Unexpected argument: 'page'. Put a text of several words in quotes."),
    ("agent list extra", "Unexpected argument: 'extra'. See `clew agent list --help`."),
    ("runtimes x", "Unexpected argument: 'x'. See `clew runtimes --help`."),
    ("threads --stat open", "Unknown option: --stat. Did you mean --state? See `clew threads --help`."),
    ("issue new T --asign ada", "Did you mean --assign?"),
    ("retry run-1 --takn", "Did you mean --taken?"),
    ("workspaces clean --dry", "Did you mean --dry-run?"),
    ("db upgrade --only-per", "Did you mean --only-pre?"),
    ("stop --nwo", "Did you mean --now?"),
    ("doctor --frob", "Unknown option: --frob. See `clew doctor --help`."),
]


@pytest.mark.parametrize(("line", "words"), [*COMMANDS, *MISSING, *VALUES, *WORDS], ids=lambda value: str(value)[:60])
def test_a_line_that_is_not_understood_says_what_to_type(
    stub: Stub, capfd: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    said = here(capfd, *typed(line))
    judge(said, 2, words)
    assert said.err.endswith("[usage]\n")
    assert stub.asked == []


TOGETHER: list[Row] = [
    ("agent edit ada", "Nothing to change. Give an option, such as --mode"),
    ("project edit web", "Nothing to change. Give --path, --base, --setup or --mode-limit."),
    ("issue edit 3", "Nothing to change. Give --title, --body or --project."),
    ("agent add x --provider guide --create-home", "--create-home needs --home."),
    ("agent edit ada --create-home", "--create-home needs --home. Name the directory with --home"),
    ("agent edit ada --add-env A=1 --remove-env A", "A cannot be added and removed at once."),
    ("agent edit ada --every ''", "--every is empty. Remove a heartbeat with --no-heartbeat."),
    ("agent edit ada --cron ''", "--cron is empty. Remove a heartbeat with --no-heartbeat."),
    ("issue new T -w", "--wait needs --assign: no agent is woken. Add --assign AGENT."),
    ("issue assign 3 --nobody -w", "--nobody and --wait cannot be combined: no agent is woken."),
    ("issue assign 3 --nobody --from base", "--nobody and --from cannot be combined"),
    ("issue comment 3 hi --silent --to ada", "--silent and --to cannot be combined: it wakes no agent."),
    ("issue comment 3 hi --silent --from base", "--silent and --from cannot be combined"),
    ("chat ada --no-project --in chat-1 --once hi", "--no-project is for a new chat."),
    ("sessions --found --limit 5", "--found and --limit cannot be combined"),
    ("policy set ok.json", "Name either an agent or a project. For example: `clew policy set ok.json --agent ada`."),
    ("policy show --agent ada --project web", "Name either an agent or a project."),
    ("up --link --detach", "--link and --detach cannot be combined: --link starts nothing."),
]


@pytest.mark.parametrize(("line", "words"), TOGETHER, ids=lambda value: str(value)[:60])
def test_options_that_contradict_or_mean_nothing_are_refused(
    stub: Stub, capfd: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    said = here(capfd, *typed(line))
    judge(said, 2, words)
    assert said.err.endswith("[cli:options]\n")
    assert stub.asked == []
