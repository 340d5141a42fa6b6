"""The pages of runs, agents, machines, sessions, workspaces, usage and settings, and the first start, in Chromium."""

import re

import pytest
from playwright.sync_api import expect

from tests.web.conftest import Visitors
from tests.web.kit import House, axe, fits
from tests.web.visitor import NARROW, Visitor

ROOMS = (
    "/runs",
    "/agents",
    "/agents/new",
    "/agents/guide",
    "/machines",
    "/machines?check=1",
    "/sessions?found=1",
    "/workspaces",
    "/workspaces?dry=1",
    "/usage",
    "/usage?by=day&since=30d",
    "/settings",
    "/settings?agent=guide",
)
HOSTILE = '<img src=x onerror="document.body.dataset.hit = 1"><script>document.body.dataset.hit = 1</script>'


@pytest.fixture
def ref(house: House) -> str:
    """A chat with the guide that has had one answer, with a tool."""
    house.change("/agents/guide", {"mode": "full"})
    ref = str(house.post("/chats", {"agent": "guide", "title": HOSTILE})["ref"])
    house.say(ref, f"RUN: echo '{HOSTILE}'\nSAY: done")
    return ref


def test_every_page_is_readable_by_all_wide_and_narrow(house: House, visitors: Visitors, ref: str) -> None:
    run = house.get(f"/threads/{ref}")["runs"][0]["ref"]
    wide, narrow = visitors(house), visitors(house, width=NARROW, dark=True)
    for path in (*ROOMS, f"/runs/{run}"):
        for visitor in (wide, narrow):
            fits(visitor.open(path))
            axe(visitor.page)


@pytest.mark.case("C26")
def test_a_run_says_why_and_what_it_did(house: House, visitor: Visitor, ref: str) -> None:
    run = house.get(f"/threads/{ref}")["runs"][0]["ref"]
    page = visitor.open(f"/runs/{run}")
    expect(page.locator("#why .badge").first).to_have_text("blank")
    expect(page.locator("#why")).to_contain_text("Confirmed by the agent")
    step = page.locator("#steps .step.tool")
    step.locator("summary").click()
    expect(step.locator("pre")).to_contain_text(HOSTILE)
    visitor.open(f"/threads/{ref}")
    page.locator("details[id^=w-] summary").first.click()
    expect(page.locator(".why")).to_contain_text("Woken by")


def test_a_long_output_is_read_when_it_is_opened(house: House, visitor: Visitor) -> None:
    house.change("/agents/guide", {"mode": "full"})
    ref = house.post("/chats", {"agent": "guide"})["ref"]
    house.say(ref, "RUN: seq 1 5000\nSAY: done")
    run = house.get(f"/threads/{ref}")["runs"][0]["ref"]
    page = visitor.open(f"/runs/{run}")
    assert "4999" not in page.content()
    page.locator("#steps .step.tool summary").click()
    expect(page.locator("#steps .step.tool pre")).to_contain_text("4999")


@pytest.mark.case("U04")
def test_hostile_text_is_inert(house: House, visitor: Visitor, ref: str) -> None:
    house.change("/agents/guide", {"instructions": HOSTILE, "model": HOSTILE})
    run = house.get(f"/threads/{ref}")["runs"][0]["ref"]
    for path in (*ROOMS, f"/runs/{run}"):
        page = visitor.open(path)
        assert page.evaluate("document.body.dataset.hit ?? null") is None, path
        assert page.locator("main img, main script, main style").count() == 0, path


def test_what_is_not_there_gets_a_page_with_a_next_step(visitor: Visitor) -> None:
    for path in ("/runs/run-99", "/agents/nobody", "/runs?agent=nobody", "/settings?agent=nobody"):
        expect(visitor.open(path, status=404).locator(".fault")).to_be_visible()
    for path in ("/runs?state=strange", "/usage?by=colour"):
        expect(visitor.open(path, status=422).locator(".fault")).to_contain_text("Use one of")


@pytest.mark.case("A01")
def test_an_agent_is_added_changed_tested_paused_and_removed(house: House, visitor: Visitor) -> None:
    page = visitor.open("/agents/new?provider=guide")
    page.get_by_label("Name").fill("ada")
    page.get_by_role("radio", name=re.compile("^ask")).check()
    page.get_by_label("Environment").fill("EDITOR=true\nPAGER=a=b")
    page.get_by_role("button", name="Add it").click()
    page.wait_for_url(re.compile("/agents/ada$"))
    added = house.get("/agents/ada")
    assert (added["mode"], added["environment_names"]) == ("ask", ["EDITOR", "PAGER"])
    expect(page.locator(".mode").nth(1)).to_contain_text("Asks before every command and file")

    page.get_by_role("button", name="Test it").click()
    expect(page.locator(".problem.good")).not_to_be_empty()
    page.get_by_label("Model", exact=True).fill("")
    page.get_by_role("radio", name=re.compile("^full")).check()
    page.get_by_label("Instructions").fill("Be brief.")
    page.get_by_role("button", name="Save", exact=True).click()
    house.until(lambda: house.get("/agents/ada")["instructions"] == "Be brief.", "the change")
    assert house.get("/agents/ada")["mode"] == "full"

    page.get_by_label("Every, in seconds").fill("3600")
    page.get_by_role("button", name="Set the heartbeat").click()
    expect(page.get_by_role("button", name="Stop it")).to_be_visible()
    assert house.get("/agents/ada")["heartbeat"]["every"] == 3600
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".state.paused")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_a_refusal_is_shown_beside_the_form(visitor: Visitor) -> None:
    page = visitor.open("/agents/new?provider=guide")
    page.get_by_label("Name").fill("no good name")
    visitor.forgive("422")
    page.get_by_role("button", name="Add it").click()
    expect(page.locator(".problem")).to_contain_text("no good name")
    expect(page.get_by_label("Name")).to_have_value("no good name")


def test_a_policy_is_shown_with_what_it_would_change_and_saved(house: House, visitor: Visitor, ref: str) -> None:
    house.say(ref, "SAY: again")
    page = visitor.open("/settings?agent=guide")
    page.get_by_label("What is set, as JSON").fill("{not json")
    page.get_by_role("button", name="Show what would change").click()
    expect(page.locator("#preview .problem")).to_contain_text("not JSON")
    page.get_by_label("What is set, as JSON").fill('{"reset": {"reasons": ["chat"]}}')
    page.get_by_role("button", name="Show what would change").click()
    expect(page.locator("#preview")).to_contain_text("would change")
    expect(page.locator("#preview tbody .badge.resume").first).to_be_visible()
    page.get_by_role("button", name="Save it").click()
    page.wait_for_url(re.compile(r"/settings\?agent=guide$"))
    assert house.get("/agents/guide/policy")["set"] == {"reset": {"reasons": ["chat"]}}


@pytest.mark.case("C34")
def test_known_sessions_say_when_they_were_proven(visitor: Visitor, ref: str) -> None:
    row = visitor.open(f"/sessions?thread={ref}").locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("ago")
    expect(row).to_contain_text("proven")


def test_a_newcomer_gets_to_a_chat_with_one_click(house: House, visitor: Visitor) -> None:
    page = visitor.open("/")
    expect(page.locator(".welcome")).to_contain_text("No agent program was found")
    page.get_by_role("button", name="Talk to the guide").click()
    page.wait_for_url(re.compile("/threads/chat-1$"))
    visitor.open("/")
    expect(page.locator(".welcome")).to_have_count(0)
    assert [each["assignee"] for each in house.get("/threads?kind=chat")] == ["guide"]
