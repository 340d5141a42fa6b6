"""Modes as OpenCode's rules: what each allows, and that nothing a configuration says makes one wider."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel import PermissionMode
from clew.providers.opencode.modes import Action, Rule, Rules, mode_of, parse_rules, rules_for

READ, ASK, EDIT, FULL = PermissionMode
DENY, ASKS, ALLOW = Action

# What OpenCode 1.18.33 gives its agent "build" when nothing is configured.
BUILD = parse_rules(
    [
        {"permission": "*", "pattern": "*", "action": "allow"},
        {"permission": "doom_loop", "pattern": "*", "action": "ask"},
        {"permission": "external_directory", "pattern": "*", "action": "ask"},
        {
            "permission": "external_directory",
            "pattern": "/srv/u/.local/share/opencode/tool-output/*",
            "action": "allow",
        },
        {"permission": "question", "pattern": "*", "action": "deny"},
        {"permission": "plan_enter", "pattern": "*", "action": "deny"},
        {"permission": "read", "pattern": "*", "action": "allow"},
        {"permission": "read", "pattern": "*.env", "action": "ask"},
        {"permission": "read", "pattern": "*.env.example", "action": "allow"},
        {"permission": "question", "pattern": "*", "action": "allow"},
    ]
)


def says(mode: PermissionMode, permission: str, pattern: str, agent: Rules = BUILD) -> Action:
    """The last rule that matches, as OpenCode finds it."""
    found = [
        rule.action
        for rule in (*agent, *rules_for(mode, agent))
        if fnmatchcase(permission, rule.permission) and fnmatchcase(pattern, rule.pattern)
    ]
    return found[-1]


@pytest.mark.case("A01")
@pytest.mark.parametrize(
    ("permission", "of", "expected"),
    [
        ("bash", "make test", (DENY, ASKS, ASKS, ALLOW)),
        ("edit", "src/a.py", (DENY, ASKS, ALLOW, ALLOW)),
        ("webfetch", "https://example.org", (DENY, ASKS, ASKS, ALLOW)),
        ("a_tool_of_a_server", "*", (DENY, ASKS, ASKS, ALLOW)),
        ("external_directory", "/etc/*", (DENY, ASKS, ASKS, ALLOW)),
        ("external_directory", "/srv/u/.local/share/opencode/tool-output/x", (ALLOW, ALLOW, ALLOW, ALLOW)),
        ("read", "src/a.py", (ALLOW, ALLOW, ALLOW, ALLOW)),
        ("read", "secrets.env", (DENY, ASKS, ASKS, ALLOW)),
        ("read", "some.env.example", (ALLOW, ALLOW, ALLOW, ALLOW)),
        ("question", "*", (ALLOW, ALLOW, ALLOW, ALLOW)),
        ("task", "general", (DENY, DENY, DENY, ALLOW)),
        ("task", "explore", (DENY, ALLOW, ALLOW, ALLOW)),
    ],
)
def test_what_each_mode_allows(permission: str, of: str, expected: tuple[Action, ...]) -> None:
    assert tuple(says(mode, permission, of) for mode in PermissionMode) == expected


@pytest.mark.case("A01")
@pytest.mark.parametrize(
    "of", ["opencode.json", "srv/p/opencode.jsonc", ".opencode/tool/x.js", "p/.git/config", ".git"]
)
@pytest.mark.parametrize("configured", [(), (Rule("edit", "*", ALLOW),), (Rule("edit", "*.json*", ALLOW),)], ids=len)
def test_what_opencode_and_git_are_told_by_is_asked_for(of: str, configured: Rules) -> None:
    agent = (*BUILD, *configured)
    assert tuple(says(mode, "edit", of, agent) for mode in PermissionMode) == (DENY, ASKS, ASKS, ALLOW)


@pytest.mark.case("A01")
@pytest.mark.parametrize("denied", ["*", "src/*", "src/opencode.json", "*.json", "*opencode*"])
def test_what_of_it_a_configuration_denies_is_not_asked_for(denied: str) -> None:
    agent = (*BUILD, Rule("edit", denied, DENY), Rule("edit", "lib/*", ALLOW))
    assert says(EDIT, "edit", "src/opencode.json", agent) is DENY
    assert says(EDIT, "edit", "lib/a.py", agent) is ALLOW


@pytest.mark.case("A01", "P03")
@pytest.mark.parametrize("mode", PermissionMode, ids=str)
def test_a_mode_is_read_back_as_itself(mode: PermissionMode) -> None:
    assert mode_of(BUILD, rules_for(mode, BUILD)) is mode


@pytest.mark.case("P04")
@pytest.mark.parametrize("mode", PermissionMode, ids=str)
def test_each_list_begins_with_a_rule_by_which_it_can_be_replaced(mode: PermissionMode) -> None:
    first = rules_for(mode, BUILD)[0]
    assert first.pattern == "*"
    assert first.action in (ALLOW, DENY)


@pytest.mark.case("A01")
@pytest.mark.parametrize("mode", [READ, ASK, EDIT], ids=str)
def test_what_a_subagent_inherits_holds_back_all_that_asks(mode: PermissionMode) -> None:
    inherited = [rule for rule in rules_for(mode, BUILD) if rule.action is DENY]
    for permission in ("bash", "edit", "webfetch", "websearch", "task"):
        assert any(rule.permission in (permission, "*") and rule.pattern == "*" for rule in inherited), permission


@pytest.mark.case("A01")
@pytest.mark.parametrize("mode", PermissionMode, ids=str)
def test_what_a_configuration_denies_stays_denied(mode: PermissionMode) -> None:
    agent = (*BUILD, Rule("bash", "rm *", DENY))
    assert says(mode, "bash", "rm -r .", agent) is DENY


@pytest.mark.case("A01")
def test_a_mode_that_the_configuration_narrows_lands_as_the_narrower() -> None:
    agent = (*BUILD, Rule("bash", "*", DENY))
    assert mode_of(agent, rules_for(FULL, agent)) is EDIT
    agent = (*BUILD, Rule("edit", "*", DENY), Rule("bash", "*", DENY))
    assert mode_of(agent, rules_for(ASK, agent)) is READ


@pytest.mark.case("A02", "P03")
def test_rules_of_no_mode_count_as_the_widest() -> None:
    assert mode_of(BUILD, ()) is FULL
    assert mode_of(BUILD, (Rule("edit", "*", DENY),)) is FULL


names = st.sampled_from(["*", "bash", "edit", "read", "task", "webfetch", "external_directory", "question", "other"])
rules = st.lists(st.builds(Rule, names, st.sampled_from(["*", "x", "*.env", "explore"]), st.sampled_from(Action)))


@pytest.mark.case("A01", "A02")
@given(rules, st.sampled_from(PermissionMode))
def test_no_configuration_makes_a_mode_wider(configured: list[Rule], mode: PermissionMode) -> None:
    agent = (*BUILD, *configured)
    assert mode_of(agent, rules_for(mode, agent)) <= mode
    rank = list(Action).index
    for permission in ("bash", "edit", "task", "webfetch", "other"):
        for of in ("x", "y.env", "explore", "general"):
            assert rank(says(mode, permission, of, agent)) <= rank(says(mode, permission, of, BUILD))
