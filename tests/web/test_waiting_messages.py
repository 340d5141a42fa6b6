"""Messages that wait, in a browser: another order, told at once, and nothing sent twice or lost over a cut line."""

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visitors
from tests.web.kit import House
from tests.web.visitor import Visitor


@pytest.fixture
def ref(house: House) -> str:
    house.change("/agents/guide", {"mode": "full"})
    found: str = house.post("/chats", {"agent": "guide"})["ref"]
    return found


def busy(house: House, visitor: Visitor, ref: str, *waiting: str) -> Page:
    """The guide works for long, and these messages wait behind it."""
    house.post(f"/threads/{ref}/words", {"text": "SLOW: 600\nSAY: first"})
    house.until(lambda: house.get(f"/threads/{ref}")["thread"]["status"] == "running", "it works")
    for text in waiting:
        house.post(f"/threads/{ref}/words", {"text": text})
    page = visitor.open(f"/threads/{ref}")
    expect(page.locator(".queued .said")).to_have_text(list(waiting))
    return page


def texts(house: House, ref: str) -> list[str]:
    return [each["text"] for each in house.get(f"/threads/{ref}")["entries"] if each["author_kind"] == "human"]


@pytest.mark.case("W17")
def test_one_is_moved_before_another_and_one_is_told_to_the_running_turn(
    house: House, visitor: Visitor, ref: str
) -> None:
    page = busy(house, visitor, ref, "SAY: second", "SAY: third", "SAY: fourth")
    row = page.locator(".queued", has_text="fourth")
    expect(page.get_by_role("button", name="Move up")).to_have_count(2)
    row.get_by_role("button", name="Move up").click()
    expect(page.locator(".queued .said")).to_have_text(["SAY: second", "SAY: fourth", "SAY: third"])
    row.get_by_role("button", name="Move up").click()
    expect(page.locator(".queued .said")).to_have_text(["SAY: fourth", "SAY: second", "SAY: third"])
    row.get_by_role("button", name="Tell it now").click()
    # The guide is told, and takes no word while it works; the page says so.
    expect(row).to_contain_text("did not take it; the next run does")
    run = house.get(f"/threads/{ref}")["runs"][0]["id"]
    steered = [each["body"]["text"] for each in house.get(f"/runs/{run}/events") if each["kind"] == "steer"]
    assert steered == ["SAY: fourth"]


@pytest.mark.case("W17")
def test_an_interrupt_and_a_fresh_start_are_chosen_beside_the_message(house: House, visitor: Visitor, ref: str) -> None:
    house.say(ref, "SAY: before")
    page = visitor.open(f"/threads/{ref}")
    expect(page.locator("body[data-ready]")).to_have_count(1)
    page.fill("#message", "SLOW: 5\nSAY: slow")
    page.get_by_label("new conversation").check()
    page.locator("#message").press("Control+Enter")
    expect(page.get_by_label("new conversation")).not_to_be_checked()
    expect(page.locator("li.item.live [data-log]")).to_have_count(1)
    page.fill("#message", "SAY: now")
    page.get_by_label("while busy").select_option("interrupt")
    page.locator("#message").press("Control+Enter")
    expect(page.locator("li.item.run .state.cancelled")).to_have_count(1)
    expect(page.locator("li.item.agent .text").last).to_contain_text("now")
    expect(page.locator("li.break .badge").first).to_have_text("blank")


@pytest.mark.case("W17")
def test_after_a_lost_answer_the_same_words_are_one_message_and_others_are_another(
    house: House, visitor: Visitor, ref: str
) -> None:
    visitor.forgive("ERR_FAILED")
    page = visitor.open(f"/threads/{ref}")
    lost = f"**/threads/{ref}/words"

    def send_in_vain(text: str) -> None:
        """The server has it, and its answer does not arrive."""
        expect(page.locator("body[data-ready]")).to_have_count(1)
        page.route(lost, lambda route: (route.fetch(), route.abort()))
        page.fill("#message", text)
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".problem")).to_contain_text("cannot be reached")
        expect(page.locator("#message")).to_have_value(text)
        page.unroute(lost)

    send_in_vain("SAY: one")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#message")).to_have_value("")
    assert texts(house, ref) == ["SAY: one"]
    # Also when the page was loaded again in between.
    send_in_vain("SAY: two")
    page.reload()
    expect(page.locator("body[data-ready]")).to_have_count(1)
    expect(page.locator("#message")).to_have_value("SAY: two")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#message")).to_have_value("")
    assert texts(house, ref) == ["SAY: one", "SAY: two"]
    # Changed words are another message: they must not be taken for the one that arrived.
    send_in_vain("SAY: three")
    page.fill("#message", "SAY: four")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#message")).to_have_value("")
    assert texts(house, ref) == ["SAY: one", "SAY: two", "SAY: three", "SAY: four"]


def test_a_form_that_is_sent_before_its_script_came_goes_nowhere(house: House, visitors: Visitors) -> None:
    """Otherwise the browser would put what was typed into the address: a key, too."""
    visitor = visitors(house, worker=False)
    visitor.forgive("ERR_FAILED")
    page = visitor.page
    page.route("**/clew.js", lambda route: route.abort())
    page.goto(f"{visitor.address}/agents/new?provider=guide")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Environment").fill("KEY=secret")
    page.get_by_role("button", name="Add it").click()
    assert "secret" not in page.url
    expect(page.get_by_label("Environment")).to_have_value("KEY=secret")
