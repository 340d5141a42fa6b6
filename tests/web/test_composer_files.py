"""Files in the composer: pasted, dropped or chosen, kept until the server has them, and found by the agent."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visitors
from tests.web.kit import House, axe, fits
from tests.web.visitor import GONE, NARROW, Visitor

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fcffff3f0300"
    "08fc02fe8b1f1c7e0000000049454e44ae426082"
)


@pytest.fixture
def ref(house: House) -> str:
    house.change("/agents/guide", {"mode": "full"})
    found: str = house.post("/chats", {"agent": "guide"})["ref"]
    return found


def entries(house: House, ref: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = house.get(f"/threads/{ref}?limit=500")["entries"]
    return found


def ready(page: Page) -> Page:
    expect(page.locator("body[data-ready]")).to_have_count(1)
    return page


def chips(page: Page) -> list[str]:
    """Their names, without their sizes."""
    found: list[str] = page.locator("#files .chip").evaluate_all(
        "all => all.map(({firstChild}) => firstChild.data.trim())"
    )
    return found


def choose(page: Page, *files: tuple[str, str, bytes]) -> None:
    payloads: Any = [{"name": name, "mimeType": kind, "buffer": content} for name, kind, content in files]
    page.locator("input[type=file]").set_input_files(payloads)


# Made in the page, because no test can fill the clipboard or drag from another window.
HANDED = """([kind, target, name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name, {type: "text/plain"}));
    const init = {bubbles: true, cancelable: true};
    const event = kind === "paste" ? new ClipboardEvent("paste", {clipboardData: data, ...init})
        : new DragEvent(kind, {dataTransfer: data, ...init});
    return !document.querySelector(target).dispatchEvent(event);
}"""


@pytest.mark.case("U10")
def test_files_are_chosen_pasted_and_dropped_and_the_agent_finds_them(house: House, visitor: Visitor, ref: str) -> None:
    page = ready(visitor.open(f"/threads/{ref}"))
    choose(page, ("screen.png", "image/png", PNG), ("gone.txt", "text/plain", b"not this"))
    assert page.evaluate(HANDED, ["paste", "#message", "note.txt", "from the clipboard"])
    assert page.evaluate(HANDED, ["dragover", "main", "x", "x"])
    assert page.evaluate(HANDED, ["drop", "main", "../drop<b>.txt", "dropped"])
    assert chips(page) == ["screen.png", "gone.txt", "note.txt", "../drop<b>.txt"]
    page.get_by_role("button", name="Remove gone.txt").click()
    axe(page)
    page.fill("#message", "RUN: cat .clew-files/*/note.txt .clew-files/*/drop_b_.txt .clew-files/.gitignore")
    page.click("#composer button[type=submit]")
    expect(page.locator("li.item.agent")).to_contain_text("from the clipboarddropped*")
    expect(page.locator("#files .chip")).to_have_count(0)
    mine = page.locator("li.item.human").first
    assert mine.locator(".files a").all_inner_texts() == ["screen.png", "note.txt", "drop_b_.txt"]
    # An image is shown; what it is not, is only downloaded.
    shown = mine.locator("img")
    expect(shown).to_have_count(1)
    page.evaluate("document.querySelector('li.item.human img').decode()")
    assert page.evaluate("document.querySelector('li.item.human img').naturalWidth") == 1
    with page.expect_download() as got:
        mine.locator(".files a", has_text="note.txt").click()
    assert got.value.suggested_filename == "note.txt"
    assert Path(got.value.path()).read_text(encoding="utf-8") == "from the clipboard"
    sent = entries(house, ref)[0]["files"]
    assert [(each["name"], each["kind"], each["size"]) for each in sent] == [
        ("screen.png", "image/png", len(PNG)),
        ("note.txt", "text/plain", 18),
        ("drop_b_.txt", "text/plain", 7),
    ]


@pytest.mark.case("U10")
def test_what_is_attached_stays_when_sending_fails_and_across_a_reload(
    house: House, visitor: Visitor, ref: str
) -> None:
    visitor.forgive(GONE)
    page = ready(visitor.open(f"/threads/{ref}"))
    choose(page, ("kept.txt", "text/plain", b"still here"))
    page.fill("#message", "SAY: got it")
    house.kill()
    page.click("#composer button[type=submit]")
    expect(page.locator(".problem")).to_contain_text("cannot be reached")
    assert chips(page) == ["kept.txt"]
    house.up()
    ready(visitor.open(f"/threads/{ref}"))
    expect(page.locator("#files .chip")).to_have_count(1)
    expect(page.locator("#message")).to_have_value("SAY: got it")
    page.click("#composer button[type=submit]")
    expect(page.locator("li.item.agent")).to_contain_text("got it")
    (sent,) = entries(house, ref)[0]["files"]
    assert sent["name"] == "kept.txt"
    ready(visitor.open(f"/threads/{ref}"))
    expect(page.locator("#message")).to_have_value("")
    expect(page.locator("#files .chip")).to_have_count(0)


@pytest.mark.case("U10")
def test_a_message_whose_answer_was_lost_is_sent_again_without_becoming_two(
    house: House, visitors: Visitors, ref: str
) -> None:
    visitor = visitors(house, worker=False)
    visitor.forgive("ERR_FAILED")
    page = ready(visitor.open(f"/threads/{ref}"))
    choose(page, ("once.txt", "text/plain", b"once"))
    page.fill("#message", "SAY: heard")
    # The server has it, and the page is not told.
    page.route("**/words", lambda route: (route.fetch(), route.abort()))
    page.keyboard.press("Control+Enter")
    expect(page.locator(".problem")).to_contain_text("cannot be reached")
    page.unroute("**/words")
    # Whatever was done in between: the same message again is the same, after a reload too.
    ready(visitor.open(f"/threads/{ref}"))
    expect(page.locator("#files .chip")).to_have_count(1)
    page.click("#composer button[type=submit]")
    expect(page.locator("#message")).to_have_value("")
    house.quiet(ref)
    mine = [each for each in entries(house, ref) if each["author_kind"] == "human"]
    assert [[file["name"] for file in each["files"]] for each in mine] == [["once.txt"]]


def test_what_was_changed_after_a_lost_answer_is_sent_as_it_is_now(house: House, visitors: Visitors, ref: str) -> None:
    visitor = visitors(house, worker=False)
    visitor.forgive("ERR_FAILED")
    page = ready(visitor.open(f"/threads/{ref}"))
    page.fill("#message", "SAY: first")
    page.route("**/words", lambda route: (route.fetch(), route.abort()))
    page.keyboard.press("Control+Enter")
    expect(page.locator(".problem")).to_contain_text("cannot be reached")
    page.unroute("**/words")
    page.fill("#message", "SAY: second")
    page.click("#composer button[type=submit]")
    expect(page.locator("#message")).to_have_value("")
    house.quiet(ref)
    mine = [each["text"] for each in entries(house, ref) if each["author_kind"] == "human"]
    assert mine == ["SAY: first", "SAY: second"]


def test_too_large_and_too_many_files_are_refused_and_the_others_stay(house: House, visitor: Visitor, ref: str) -> None:
    page = ready(visitor.open(f"/threads/{ref}"))
    choose(page, ("small.txt", "text/plain", b"small"), ("large.bin", "", bytes(10_000_001)))
    expect(page.locator(".problem")).to_contain_text("large.bin (10.0 MB) is not attached: a file has up to 10.0 MB.")
    assert chips(page) == ["small.txt"]
    nine = bytes(9_000_000)
    choose(page, ("a.bin", "", nine), ("b.bin", "", nine), ("c.bin", "", nine))
    expect(page.locator(".problem")).to_contain_text(
        "c.bin (9.0 MB) is not attached: the files of a message have up to"
    )
    for name in ("a.bin", "b.bin"):
        page.get_by_role("button", name=f"Remove {name}").click()
    choose(page, *((f"{number}.txt", "text/plain", b"x") for number in range(10)))
    expect(page.locator(".problem")).to_contain_text("9.txt (1 B) is not attached: a message has up to 10 files.")
    assert len(chips(page)) == 10
    fits(page)
    # Files alone are a message, too.
    page.click("#composer button[type=submit]")
    expect(page.locator("li.item.human .text")).to_contain_text("small.txt, 0.txt, 1.txt")
    assert len(entries(house, ref)[0]["files"]) == 10


def test_a_message_that_nobody_is_asked_is_sent_and_shows_its_files(house: House, visitors: Visitors) -> None:
    ref = house.post("/issues", {"title": "Nobody's"})["thread"]["ref"]
    page = ready(visitors(house, width=NARROW).open(f"/threads/{ref}"))
    choose(page, ("a very long name of a file that goes on and on and on.txt", "text/plain", b"x"))
    fits(page)
    page.fill("#message", "For whoever takes it.")
    page.click("#composer button[type=submit]")
    expect(page.locator("li.item.human .files a")).to_have_count(1)
    fits(page)
    page.fill("#message", "/note One more.")
    choose(page, ("note.txt", "text/plain", b"x"))
    page.click("#composer button[type=submit]")
    expect(page.locator("li.item.human .files a")).to_have_count(2)
    assert [(each["text"], len(each["files"])) for each in entries(house, ref)] == [
        ("Nobody's", 0),
        ("For whoever takes it.", 1),
        ("One more.", 1),
    ]


@pytest.mark.case("U10")
def test_without_javascript_the_form_sends_a_message_with_files_once(
    house: House, visitors: Visitors, ref: str, tmp_path: Path
) -> None:
    page = visitors(house, javascript=False).open(f"/threads/{ref}")
    file = tmp_path / 'a "quoted" näme.bin'
    file.write_bytes(b"\r\n--\0\xff\r\n" + bytes(range(256)))
    page.locator("input[type=file]").set_input_files([file])
    page.fill("#message", "SAY: line one\nTHINK: two")
    page.click("#composer button[type=submit]")
    expect(page.locator("li.item.human .files a")).to_have_text("a _quoted_ näme.bin")
    house.quiet(ref)
    (sent,) = (each for each in entries(house, ref) if each["author_kind"] == "human")
    assert sent["text"] == "SAY: line one\nTHINK: two"
    file_address = f"{house.address}/api/v1/files/{sent['files'][0]['id']}"
    assert page.context.request.get(file_address).body() == file.read_bytes()
    # A browser that sends the form again, as after a lost answer, has the key that it had.
    key = page.locator("#composer input[name=key]").get_attribute("value") or ""
    form: Any = {"key": key, "text": "SAY: again", "files": {"name": "x.txt", "mimeType": "text/plain", "buffer": b"x"}}
    for _ in range(2):
        address = f"{house.address}/threads/{ref}/say"
        answer = page.context.request.post(address, multipart=form, headers={"origin": house.address})
        assert answer.ok
        assert answer.url.startswith(f"{house.address}/threads/{ref}")
    house.quiet(ref)
    mine = [each for each in entries(house, ref) if each["author_kind"] == "human"]
    assert [(each["text"], len(each["files"])) for each in mine[1:]] == [("SAY: again", 1)]


def test_what_another_sites_form_sends_is_refused(house: House, visitors: Visitors, ref: str) -> None:
    visitor = visitors(house)
    visitor.forgive("403|net::ERR_")
    page = visitor.page
    page.goto(
        f'data:text/html,<form method="post" enctype="multipart/form-data" action="{house.address}/threads/{ref}/say">'
        '<input name="text" value="SAY: forged"><button>go</button></form>'
    )
    page.click("button")
    page.wait_for_load_state()
    assert entries(house, ref) == []


def test_a_download_is_inert_whatever_it_says_it_is(house: House, visitor: Visitor) -> None:
    html = b"<script>document.title = 'hit'</script>"
    request, files = visitor.context.request, f"{house.address}/api/v1/files"
    said = {"origin": house.address, "content-type": "text/html"}
    uploaded = request.post(f"{files}?name=page.html", data=html, headers=said)
    answer = request.get(f"{files}/{uploaded.json()['id']}")
    assert answer.body() == html
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''page.html"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
