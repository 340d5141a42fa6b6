"""A thread's page in a browser: it shows what the journal has, whatever happens to the server or the tab."""

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.conftest import THOROUGH
from tests.web.conftest import Visitors
from tests.web.kit import House
from tests.web.visitor import Visitor

GONE = r"net::ERR_"
"""A page whose server went away says so in its console; nothing of it may be uncaught."""


def set_mode(house: House, mode: str) -> None:
    house.change("/agents/guide", {"mode": mode})


@pytest.fixture
def ref(house: House) -> str:
    set_mode(house, "full")
    found: str = house.post("/chats", {"agent": "guide"})["ref"]
    return found


def shown(page: Page) -> list[int]:
    """The numbers of the entries on the page, in their order."""
    return [
        int(each)
        for each in page.eval_on_selector_all("#journal > li.item[data-seq]", "all => all.map(e => e.dataset.seq)")
    ]


def entries(house: House, ref: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = house.get(f"/threads/{ref}?limit=500")["entries"]
    return found


def send(page: Page, text: str) -> None:
    expect(page.locator("body[data-ready]")).to_have_count(1)
    page.fill("#message", text)
    page.click("#composer button[type=submit]")


def test_a_message_is_answered_on_the_open_page(house: House, visitor: Visitor, ref: str) -> None:
    page = visitor.open(f"/threads/{ref}")
    page.evaluate("window.stays = true")
    send(page, "SLOW: 1\nSAY: **bold** words")
    expect(page.locator("li.item.agent .text strong")).to_have_text("bold")
    expect(page.locator("#message")).to_have_value("")
    assert shown(page) == [1, 2]
    assert page.evaluate("window.stays")
    # How it was continued, in a sentence that opens the why.
    why = page.locator("li.item.agent details[id^=w-]")
    expect(why.locator(".badge").first).to_have_text("blank")
    expect(why.locator("summary")).to_contain_text("New conversation")
    why.locator("summary").click()
    expect(why.locator(".why")).to_contain_text("Woken by")
    assert len(entries(house, ref)) == 2


@pytest.mark.case("U02")
def test_the_page_has_the_journal_after_every_kill_of_the_server(house: House, visitor: Visitor, ref: str) -> None:
    visitor.forgive(GONE)
    page = visitor.open(f"/threads/{ref}")
    page.evaluate("window.stays = true")
    for turn in range(20 if THOROUGH else 3):
        house.post(f"/threads/{ref}/words", {"text": f"SLOW: 1\nSAY: answer {turn} " + "word " * 200})
        expect(page.locator("li.item.live")).to_have_count(1)
        house.kill()
        expect(page.locator("#live")).to_be_visible()
        house.up()
        house.quiet(ref)
        journal = entries(house, ref)
        expect(page.locator(f"#e-{journal[-1]['seq']}")).to_be_visible()
        expect(page.locator("li.item.live")).to_have_count(0)
        assert shown(page) == [each["seq"] for each in journal]
    expect(page.locator("#live")).to_be_hidden()
    texts = page.locator("li.item[data-seq] .text").all_inner_texts()
    # Code stands in the journal in backticks.
    assert [each.split() for each in texts] == [each["text"].replace("`", "").split() for each in entries(house, ref)]
    assert page.evaluate("window.stays")


@pytest.mark.case("U01")
def test_a_page_that_is_cut_off_says_so_and_keeps_what_is_typed(house: House, visitor: Visitor, ref: str) -> None:
    visitor.forgive(GONE)
    page = visitor.open(f"/threads/{ref}")
    expect(page.locator("body[data-ready]")).to_have_count(1)
    expect(page.locator("#live")).to_be_hidden()
    house.kill()
    expect(page.locator("#live")).to_contain_text("Cut off")
    send(page, "SAY: typed while it was away")
    expect(page.locator(".problem")).to_contain_text("cannot be reached")
    expect(page.locator("#message")).to_have_value("SAY: typed while it was away")
    house.up()
    expect(page.locator("#live")).to_be_hidden(timeout=40_000)
    assert entries(house, ref) == []
    page.click("#composer button[type=submit]")
    expect(page.locator("li.item.agent")).to_have_count(1)
    assert shown(page) == [1, 2]


@pytest.mark.case("U03")
def test_twenty_tabs_of_one_browser_are_live(house: House, visitor: Visitor, ref: str) -> None:
    tabs = [visitor.open(f"/threads/{ref}", tab=visitor.tab()) for _ in range(20)]
    house.post(f"/threads/{ref}/words", {"text": "SAY: to all"})
    for tab in tabs:
        expect(tab.locator("#e-2")).to_contain_text("to all")
        assert shown(tab) == [1, 2]


@pytest.mark.case("U05", "A03")
def test_of_two_tabs_that_answer_one_counts_and_the_other_is_told(house: House, visitors: Visitors, ref: str) -> None:
    set_mode(house, "ask")
    one, two = (visitors(house).open(f"/threads/{ref}") for _ in range(2))
    for each in visitors.all:
        each.forgive("409|ERR_FAILED")
    house.post(f"/threads/{ref}/words", {"text": "RUN: echo asked"})
    for tab in (one, two):
        expect(tab.locator("#asks .ask")).to_have_count(1)
    # The second does not hear of the first's answer in time.
    two.route(lambda url: "part=" in url, lambda route: route.abort())
    one.locator("#asks .ask button", has_text="Allow").click()
    expect(one.locator("#asks .ask")).to_have_count(0)
    # Who answered, when and what stays among the steps.
    steps = one.locator("li.item.agent details[id^=s-]")
    steps.locator("summary").first.click()
    expect(steps.locator(".step.ask")).to_contain_text("approved by user")
    expect(steps.locator(".step.ask")).to_contain_text("echo asked")
    two.locator("#asks .ask button", has_text="Deny").click()
    expect(two.locator(".problem")).to_contain_text("user")
    house.quiet(ref)
    (asked,) = house.get("/approvals?state=all")
    assert asked["state"] == "approved"
    expect(one.locator("li.item.agent")).to_contain_text("asked")


HOSTILE = [
    "<script>document.body.dataset.hit = 1</script>",
    '<img src=x onerror="document.body.dataset.hit = 1">',
    "[click](javascript:document.body.dataset.hit=1)",
    "<style>body { display: none }</style>",
    '</textarea></div><svg onload="document.body.dataset.hit = 1">',
    "![x](http://127.0.0.1:1/tells-who-reads.png)",
]


@pytest.mark.case("U04")
def test_hostile_text_is_inert(house: House, visitor: Visitor) -> None:
    set_mode(house, "full")
    ref = house.post("/issues", {"title": HOSTILE[0], "body": "\n\n".join(HOSTILE), "assignee": "guide"})["thread"][
        "ref"
    ]
    house.quiet(ref)
    for each in HOSTILE:
        house.post(f"/threads/{ref}/words", {"text": f"SAY: {each}"})
        house.quiet(ref)
    for path in ("/", f"/threads/{ref}"):
        page = visitor.open(path)
        page.wait_for_timeout(300)
        assert page.evaluate("document.body.dataset.hit ?? null") is None
        assert page.evaluate("getComputedStyle(document.body).display") == "block"
        assert page.eval_on_selector_all("main a", "all => all.filter(a => !/^https?:$/.test(a.protocol)).length") == 0
        assert page.eval_on_selector_all("main img, main script, main style, main svg", "all => all.length") == 0


@pytest.mark.case("U09")
def test_it_can_be_read_without_scripts(house: House, visitors: Visitors, ref: str) -> None:
    house.post(f"/threads/{ref}/words", {"text": "SAY: plain"})
    house.quiet(ref)
    page = visitors(house, javascript=False).open(f"/threads/{ref}")
    assert shown_text(page) == ["SAY: plain", "plain"]


def shown_text(page: Page) -> list[str]:
    return [each.strip() for each in page.locator("li.item .text").all_inner_texts()]


@pytest.mark.case("W16")
def test_a_preview_says_what_a_message_will_do(visitor: Visitor, ref: str) -> None:
    page = visitor.open(f"/threads/{ref}")
    page.fill("#message", "SAY: one")
    expect(page.locator("#preview")).to_contain_text("Preview: Starts a new conversation")
    page.click("#composer button[type=submit]")
    expect(page.locator("li.item.agent")).to_have_count(1)
    page.fill("#message", "SAY: two")
    expect(page.locator("#preview")).to_contain_text("Preview: Continues session 1")


def test_what_is_typed_before_the_script_came_stays_and_has_its_preview(
    house: House, visitors: Visitors, ref: str
) -> None:
    visitor = visitors(house, worker=False)
    page = visitor.page
    held = list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/thread.js*", hold)
    with page.expect_request("**/thread.js*"):
        visitor.open(f"/threads/{ref}")
    page.fill("#message", "SAY: early")
    expect(page.locator("body[data-ready]")).to_have_count(0)
    (route,) = held
    route.continue_()
    expect(page.locator("#preview")).to_contain_text("Preview: Starts a new conversation")
    expect(page.locator("#message")).to_have_value("SAY: early")


@pytest.mark.case("W17")
def test_a_message_that_waits_is_edited_and_another_taken_back(house: House, visitor: Visitor, ref: str) -> None:
    house.post(f"/threads/{ref}/words", {"text": "SLOW: 600\nSAY: first"})
    page = visitor.open(f"/threads/{ref}")
    expect(page.locator("li.item.live .steps")).to_have_count(1)
    for text in ("SAY: second", "SAY: third"):
        send(page, text)
        expect(page.locator(".queued", has_text=text)).to_have_count(1)
    page.locator(".queued", has_text="third").locator("button", has_text="Take back").click()
    expect(page.locator(".queued")).to_have_count(1)
    waits = page.locator(".queued")
    waits.locator("summary").click()
    waits.locator("textarea").fill("SAY: changed")
    waits.locator("button", has_text="Save").click()
    expect(page.locator(".queued .said")).to_have_text("SAY: changed")
    page.locator("li.item.live button", has_text="Interrupt").click()
    expect(page.locator("li.item.agent .text").last).to_have_text("changed")
    expect(page.locator(".queued")).to_have_count(0)
    assert "third" not in entries(house, ref)[-1]["text"]
