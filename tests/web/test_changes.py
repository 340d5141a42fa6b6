"""The changes of a thread: shown file by file, commented line by line, and taken over."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from clew.web.diff import files_of
from clew.web.pages.changes import AT_ONCE, SCREEN, shown_files
from tests.server.kit import House as Served
from tests.server.kit import inside
from tests.web.conftest import Visitors
from tests.web.kit import House, axe, fits
from tests.web.visitor import NARROW, Visitor

LOGIN = '"""The login."""\n\n\ndef login(name):\n    return find(name)\n'
SCRIPT = r"""RUN: sed -i 's/return find/return must_find/' login.py; git mv old.txt 'new name.txt'
RUN: seq 900 > numbers.txt; printf '<script>alert(1)</script>\n\342\200\256evil ```\n' > '<b onclick=x>.html'
RUN: printf '\000' > blob.bin
SAY: done"""
HOSTILE = "<b onclick=x>.html"


def diff_of(name: str, lines: int) -> str:
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{lines} @@\n"
    return head + "".join(f"+{number}\n" for number in range(lines))


def test_long_files_and_those_that_do_not_fit_on_the_page_are_read_when_they_are_opened() -> None:
    many = [diff_of(f"f{number}", AT_ONCE) for number in range(SCREEN // AT_ONCE)]
    files = files_of("".join([diff_of("long", AT_ONCE + 1), *many, diff_of("late", 1)]))
    assert [shown.here for shown in shown_files(files)] == [False, *(True for _ in many), False]


def test_a_thread_without_a_worktree_says_why_and_what_to_do(tmp_path: Path) -> None:
    async def work(house: Served) -> None:
        await house.http.post("/api/v1/issues", json={"title": "<i>Mend it</i>"})
        page = await house.http.get("/threads/issue-1/changes")
        assert page.status_code == 200
        assert "issue-1 has no project, so its agent works in its own home." in page.text
        assert "clew issue edit issue-1 --project NAME" in page.text
        assert "<i>Mend" not in page.text
        assert (await house.http.get("/threads/issue-9/changes")).status_code == 404

    inside(tmp_path, work)


# ---------------------------------------------------------------- in a browser


@pytest.fixture
def ref(house: House) -> str:
    """An issue in which an agent has changed files."""
    project = house.root / "shop"
    project.mkdir()
    for name, text in {"login.py": LOGIN, "old.txt": "one\ntwo\nthree\n"}.items():
        (project / name).write_text(text, encoding="utf-8")
    named = ["-c", "user.name=a person", "-c", "user.email=person@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "A shop"]):
        subprocess.run(["git", "-C", project, *named, *arguments], check=True, capture_output=True)
    house.change("/agents/guide", {"mode": "full"})
    house.post("/projects", {"name": "shop", "source": str(project)})
    issue = {"title": "Find people", "body": SCRIPT, "project": "shop", "assignee": "guide"}
    found = str(house.post("/issues", issue)["thread"]["ref"])
    house.quiet(found)
    return found


def messages(house: House, ref: str) -> list[str]:
    """What people said after the issue was opened."""
    entries: list[dict[str, Any]] = house.get(f"/threads/{ref}?limit=500")["entries"]
    return [entry["text"] for entry in entries if entry["author_kind"] != "agent"][1:]


def unfold(page: Page, name: str) -> None:
    page.locator("details.file > summary", has_text=name).click()


def comment(page: Page, line: str, words: str) -> None:
    page.locator("tr[data-line]", has_text=line).click()
    page.keyboard.type(words)


@pytest.mark.case("U07")
def test_comments_on_lines_are_sent_as_one_message(house: House, visitor: Visitor, ref: str) -> None:
    page = visitor.open(f"/threads/{ref}/changes")
    expect(page.locator("details.file")).to_have_count(5)
    comment(page, "return must_find(name)", "What if nobody has it?")
    # By keyboard: back to the line, a line up to the one that was removed, and a comment on that.
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.keyboard.type("This was right.")
    comment(page, "evil", "Not this.")
    expect(page.locator("#tray b")).to_have_text("Comments: 3")
    page.locator("#tray li").nth(2).locator("button").first.click()
    page.keyboard.press("Control+A")
    page.keyboard.type("Not that.")
    page.reload()
    expect(page.locator("#tray b")).to_have_text("Comments: 3")
    assert messages(house, ref) == []
    page.locator("#tray button.first").click()
    expect(page.locator("#tray")).to_be_hidden()
    (sent,) = messages(house, ref)
    assert sent == (
        "Comments on the changes:\n\n"
        "`login.py`, line 5:\n\n```\n    return must_find(name)\n```\n\nWhat if nobody has it?\n\n"
        "`login.py`, line 5 before the change:\n\n```\n    return find(name)\n```\n\nThis was right.\n\n"
        f"`{HOSTILE}`, line 2:\n\n````\n⟨U+202E⟩evil ```\n````\n\nNot that."
    )
    house.quiet(ref)
    page.reload()
    expect(page.locator("#tray")).to_be_hidden()


@pytest.mark.case("U07")
def test_a_send_that_failed_keeps_all_comments_and_sends_them_once(house: House, visitor: Visitor, ref: str) -> None:
    visitor.forgive("ERR_FAILED")
    page = visitor.open(f"/threads/{ref}/changes")
    comment(page, "return must_find(name)", "One")
    comment(page, "return find(name)", "Two")
    # The server has it, and its answer is lost.
    lost = f"**/threads/{ref}/words"
    page.route(lost, lambda route: (route.fetch(), route.abort()))
    page.locator("#tray button.first").click()
    expect(page.locator(".problem")).to_contain_text("cannot be reached")
    expect(page.locator("#tray b")).to_have_text("Comments: 2")
    page.reload()
    page.unroute(lost)
    expect(page.locator("#tray b")).to_have_text("Comments: 2")
    page.locator("#tray button.first").click()
    expect(page.locator("#tray")).to_be_hidden()
    assert len(messages(house, ref)) == 1


@pytest.mark.case("U07")
def test_a_comment_whose_line_is_gone_can_be_changed_and_removed(house: House, visitor: Visitor, ref: str) -> None:
    page = visitor.open(f"/threads/{ref}/changes")
    comment(page, "return must_find(name)", "Why?")
    house.say(ref, "RUN: git checkout -q main -- login.py\nSAY: undone")
    expect(page.locator("#moved")).to_be_visible()
    page.locator("#moved a").click()
    area = page.locator("#tray textarea")
    expect(area).to_have_value("Why?")
    area.press("End")
    page.keyboard.type(" Really?")
    expect(area).to_have_value("Why? Really?")
    page.locator("#tray .box button").click()
    expect(page.locator("#tray")).to_be_hidden()


@pytest.mark.case("U04")
def test_a_diff_with_hostile_names_and_lines_is_text(visitor: Visitor, ref: str) -> None:
    page = visitor.open(f"/threads/{ref}/changes")
    expect(page.locator("details.file .name", has_text=HOSTILE)).to_have_count(1)
    expect(page.locator("td.code", has_text="<script>alert(1)</script>")).to_have_count(1)
    expect(page.locator("td.code .odd")).to_have_text("⟨U+202E⟩")
    assert page.locator("[onclick]").count() == 0
    axe(page)


@pytest.mark.case("U09")
def test_a_long_file_is_read_when_it_is_opened_and_all_is_read_without_scripts(
    house: House, visitors: Visitors, ref: str
) -> None:
    page = visitors(house, width=NARROW).open(f"/threads/{ref}/changes")
    expect(page.locator("td.code", has_text="900")).to_have_count(0)
    unfold(page, "numbers.txt")
    expect(page.locator("td.code", has_text="900")).to_have_count(1)
    fits(page)
    page = visitors(house, javascript=False).open(f"/threads/{ref}/changes")
    unfold(page, "numbers.txt")
    page.locator("details.file a").click()
    expect(page.locator("td.code", has_text="900")).to_have_count(1)
    page.locator("select[name=run]").select_option("run-1")
    page.locator("form.choose button").click()
    expect(page.locator("details.file")).to_have_count(5)


def test_a_run_is_shown_in_the_worktree_of_its_own_agent(house: House, visitor: Visitor, ref: str) -> None:
    house.post("/agents", {"name": "bob", "provider": "guide", "mode": "full"})
    house.post(f"/threads/{ref}/words", {"text": "WRITE: bob.txt hello\nSAY: done", "agent": "bob"})
    run = house.quiet(ref)["runs"][0]
    assert run["agent"] == "bob"
    page = visitor.open(f"/threads/{ref}/changes?run={run['ref']}")
    expect(page.locator("details.file .name")).to_have_text(["bob.txt"])
    expect(page.locator("select[name=agent]")).to_have_value("bob")
    page.locator("select[name=agent]").select_option("guide")
    page.locator("select[name=run]").select_option("")
    page.locator("form.choose button").click()
    expect(page.locator("details.file")).to_have_count(5)


def test_the_work_is_committed_merged_and_cleaned_on_the_page(house: House, visitor: Visitor, ref: str) -> None:
    visitor.forgive("status of 409")
    page = visitor.open(f"/threads/{ref}/changes")
    merge = page.locator("form[data-call$=merge] button")
    merge.click()
    problem = page.locator("#work .problem")
    expect(problem).to_contain_text("clew commit")
    # It outlives the next reading of that part.
    read = page.locator("#work form[data-call$=merge]").element_handle()
    house.post(f"/threads/{ref}/words", {"text": "A note.", "wakes": False})
    read.wait_for_element_state("hidden")
    expect(problem).to_contain_text("clew commit")
    page.locator("form[data-call$=commit] button").click()
    expect(page.locator("#told")).to_contain_text("Committed")
    page.locator("#work", has_text="Check out").get_by_role("button", name="Check out").click()
    page.get_by_role("button", name="Give it back").click()
    expect(page.get_by_role("button", name="Check out")).to_be_visible()
    merge.click()
    expect(page.locator("#told")).to_contain_text("into main")
    expect(page.locator("#work")).to_contain_text("Everything of it is merged")
    page.context.remove_listener("dialog", visitor._dialog)  # noqa: SLF001 - this question is expected
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove the directory").click()
    house.until(lambda: not house.get("/workspaces"), "the worktree is removed")


def test_the_lineage_of_a_thread_in_a_browser(house: House, visitors: Visitors, ref: str) -> None:
    house.post(f"/threads/{ref}/words", {"text": "SAY: again", "fresh": True})
    house.quiet(ref)
    visitor = visitors(house, width=NARROW)
    page = visitor.open(f"/threads/{ref}/lineage")
    expect(page.locator("svg .session")).to_have_count(2)
    expect(page.locator("svg .edge.broke")).to_have_count(1)
    expect(page.locator("tbody tr").last).to_contain_text("current")
    fits(page)
    axe(page)
