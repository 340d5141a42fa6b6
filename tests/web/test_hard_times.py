"""What a person sees when something is wrong: cut off, frozen, the agent gone, a run held, the disk full."""

import resource
import time

import pytest
from playwright.sync_api import expect

from clew.providers.guide.memory import home_of
from tests.web.actor import NAME, install
from tests.web.conftest import Visitors
from tests.web.kit import House, axe, fits
from tests.web.scene import actor
from tests.web.visitor import GONE, NARROW, Visitor


@pytest.fixture
def ref(house: House) -> str:
    house.change("/agents/guide", {"mode": "full"})
    found: str = house.post("/chats", {"agent": "guide"})["ref"]
    return found


@pytest.mark.case("U02")
def test_a_tab_that_was_frozen_catches_up(house: House, visitor: Visitor, ref: str) -> None:
    page = visitor.open(f"/threads/{ref}")
    expect(page.locator("body[data-ready]")).to_have_count(1)
    session = visitor.context.new_cdp_session(page)
    session.send("Page.setWebLifecycleState", {"state": "frozen"})
    for text in ("one", "two"):
        house.say(ref, f"SAY: {text}")
    session.send("Page.setWebLifecycleState", {"state": "active"})
    expect(page.locator("li.item.agent .text")).to_have_text(["one", "two"])
    assert page.locator("#journal > li[data-seq]").count() == 4


@pytest.mark.case("U01", "U02")
def test_a_browser_that_was_offline_says_so_and_misses_nothing(house: House, visitor: Visitor, ref: str) -> None:
    visitor.forgive(GONE)
    page = visitor.open(f"/threads/{ref}")
    expect(page.locator("body[data-ready]")).to_have_count(1)
    visitor.context.set_offline(True)
    page.fill("#message", "SAY: typed offline")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".problem")).to_contain_text("What you typed is kept")
    house.say(ref, "SAY: meanwhile")
    visitor.context.set_offline(False)
    expect(page.locator("li.item.agent", has_text="meanwhile")).to_have_count(1)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("li.item.agent", has_text="typed offline")).to_have_count(1)
    assert page.locator("#journal > li[data-seq]").count() == 4


def test_a_failure_needs_a_person_until_it_is_tried_again(house: House, visitors: Visitors, ref: str) -> None:
    house.post(f"/threads/{ref}/words", {"text": "FAIL: 400"})
    house.quiet(ref)
    visitor = visitors(house, width=NARROW)
    page = visitor.open("/")
    need = page.locator("#needs .need")
    expect(need).to_contain_text("failed with 400")
    expect(need.locator("time")).to_contain_text("ago")
    page.keyboard.press("n")
    expect(need).to_be_focused()
    fits(page)
    axe(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(need.get_by_role("button", name="Try again")).to_be_focused()
    page.keyboard.press("Enter")
    house.until(lambda: len(house.get(f"/threads/{ref}")["runs"]) == 2, "another try")


def test_what_runs_says_what_it_does_now_and_since_when(house: House, visitor: Visitor, ref: str) -> None:
    house.post(f"/threads/{ref}/words", {"text": "RUN: echo measured; sleep 60"})
    page = visitor.open("/")
    expect(page.locator("#running .now")).to_contain_text("echo measured")
    expect(page.locator("#running time")).to_have_count(1)


def test_an_agent_that_is_not_installed_is_named_with_what_to_do(house: House, visitor: Visitor) -> None:
    visitor.forgive("status of 4")
    install(house.programs, home_of(house.environment), {})
    house.post("/agents", {"name": "ada", **actor()})
    (house.programs / NAME).unlink()
    house.get("/doctor")
    assert house.get("/agents/ada")["missing"]
    page = visitor.open("/agents/ada")
    expect(page.locator("[data-part=head] .problem")).to_contain_text(NAME)
    ref = house.post("/chats", {"agent": "ada"})["ref"]
    house.post(f"/threads/{ref}/words", {"text": "Hello"})
    visitor.open(f"/threads/{ref}")
    run = page.locator("li.item.run")
    expect(run.locator(".state")).to_have_text("held")
    expect(run).to_contain_text(NAME)
    expect(run.get_by_role("button", name="Try now")).to_be_visible()


@pytest.mark.case("L10")
def test_a_run_that_is_held_says_until_when_and_can_be_tried_now(house: House, visitor: Visitor, ref: str) -> None:
    house.post(f"/threads/{ref}/words", {"text": f"FAIL: 429 {int(time.time()) + 7_300}"})
    page = visitor.open(f"/threads/{ref}")
    run = page.locator("li.item.run", has=page.locator(".state.held"))
    expect(run).to_contain_text("in 2 h")
    expect(run.get_by_role("button", name="Try now")).to_be_visible()
    expect(visitor.open("/").locator("#asleep .row").first).to_contain_text("goes on in 2 h")


def test_where_the_disk_is_full_the_page_says_so_and_keeps_the_words(house: House, visitor: Visitor, ref: str) -> None:
    visitor.forgive("status of 5")
    page = visitor.open(f"/threads/{ref}")
    expect(page.locator("body[data-ready]")).to_have_count(1)
    assert house.pid is not None
    before = resource.prlimit(house.pid, resource.RLIMIT_FSIZE)
    # No file of the server can grow any more.
    resource.prlimit(house.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    page.fill("#message", "SAY: kept")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".problem")).to_contain_text("is full")
    expect(page.locator(".problem")).to_contain_text("Free some space")
    expect(page.locator("#message")).to_have_value("SAY: kept")
    resource.prlimit(house.pid, resource.RLIMIT_FSIZE, before)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("li.item.agent")).to_have_count(1)
    assert [each["text"] for each in house.get(f"/threads/{ref}")["entries"]] == ["SAY: kept", "kept"]


def test_times_are_in_the_readers_zone(house: House, visitors: Visitors, ref: str) -> None:
    house.say(ref, "SAY: now")
    shown = {}
    for zone in ("Asia/Tokyo", "America/New_York"):
        page = visitors(house, zone=zone).open(f"/threads/{ref}")
        first = page.locator("#e-1 time")
        wanted = first.evaluate(
            """(each, zone) => new Date(each.dateTime).toLocaleTimeString(undefined,
            { hour: '2-digit', minute: '2-digit', timeZone: zone })""",
            zone,
        )
        expect(first).to_contain_text(wanted)
        shown[zone] = first.inner_text()
    assert shown["Asia/Tokyo"] != shown["America/New_York"]


def test_scripts_have_a_policy_and_trusted_types(visitor: Visitor) -> None:
    page = visitor.page
    answer = page.goto(f"{visitor.address}/agents")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "require-trusted-types-for 'script'" in policy
    visitor.forgive("TrustedHTML|Trusted Type|dynamic code|unsafe-eval|Content Security Policy")
    refused = page.evaluate("try { document.body.innerHTML = '<b>x</b>'; false } catch { true }")
    assert refused
