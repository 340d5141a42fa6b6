"""Push in a real Chromium: what arrives is shown once, and the settings say why it cannot be turned on."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.up.kit import until
from tests.web.conftest import Visitors
from tests.web.kit import House, axe, house
from tests.web.test_notifications import asked, chat, notified, shown
from tests.web.visitor import Visitor

KEYS = {
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "auth": "BTBZMqHH6r4Tts7J_aSIgg",
}
SUBSCRIBES = f"""
    let made = null;
    const raw = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    PushManager.prototype.getSubscription = async () => made;
    PushManager.prototype.subscribe = async ({{applicationServerKey}}) => made = {{
        options: {{applicationServerKey: raw(applicationServerKey).buffer}},
        toJSON: () => ({{endpoint: 'https://push.invalid/mine', expirationTime: null, keys: {json.dumps(KEYS)}}}),
        unsubscribe: async () => {{ made = null; return true; }},
    }};
"""
"""The part of the browser that its maker's push service is needed for."""
NEEDS = '{"id": "ap-1", "kind": "needs", "thread": "issue-3"}'


class PushedTo:
    """What the browser's push service does: a message comes to the service worker, whatever pages are open."""

    def __init__(self, visitor: Visitor) -> None:
        self._page = visitor.tab()
        self._session = visitor.context.new_cdp_session(self._page)
        self._known: dict[str, str] = {}
        self._session.on("ServiceWorker.workerRegistrationUpdated", self._hear)
        self._session.send("ServiceWorker.enable")
        self._origin = visitor.address

    def _hear(self, said: Any) -> None:
        for each in said["registrations"]:
            self._known[each["scopeURL"]] = each["registrationId"]

    def _is_known(self) -> bool:
        # What the browser says is only heard while this thread waits for it.
        self._page.wait_for_timeout(50)
        return f"{self._origin}/" in self._known

    def push(self, message: str) -> None:
        until(self._is_known, "the service worker")
        there = {"origin": self._origin, "registrationId": self._known[f"{self._origin}/"]}
        self._session.send("ServiceWorker.deliverPushMessage", {**there, "data": message})


def elsewhere(visitor: Visitor, house: House) -> None:
    """No page of Clew is open any more, and the service worker knows it: a page goes a moment later."""
    visitor.page.goto("about:blank")
    (worker,) = visitor.context.service_workers
    there = "clients.matchAll({type: 'window', includeUncontrolled: true}).then((all) => all.length)"
    house.until(lambda: worker.evaluate(there) == 0, "no page is open")


def looks_again(visitor: Visitor) -> Page:
    # A page that does not notify by itself, and so takes nothing away.
    return visitor.open("/settings")


def allowed(visitors: Visitors, house: House) -> Visitor:
    visitor = visitors(house)
    visitor.context.grant_permissions(["notifications"], origin=house.address)
    visitor.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    return visitor


@pytest.mark.case("U13")
def test_what_is_pushed_is_shown_while_no_page_is_open_and_leads_to_its_thread(
    house: House, visitors: Visitors
) -> None:
    visitor = allowed(visitors, house)
    service = PushedTo(visitor)
    elsewhere(visitor, house)
    for message in (NEEDS, NEEDS, '{"id": "r-1", "kind": "needs", "thread": "chat-1", "title": "<b>A plan</b>"}'):
        service.push(message)
    page = looks_again(visitor)
    told = [["chat-1 needs you", "<b>A plan</b>", "/threads/chat-1"], ["issue-3 needs you", "", "/threads/issue-3"]]
    house.until(lambda: sorted(shown(page)) == told, "both, each once")


@pytest.mark.case("U13")
def test_nothing_is_pushed_onto_who_looks_or_was_told_by_a_page(house: House, visitors: Visitors) -> None:
    told = notified(visitors, house)
    ref, page = chat(house), told.page
    approval = asked(house, ref)
    house.until(lambda: shown(page), "a notification of the page itself")
    (worker,) = told.context.service_workers
    notice = {"id": approval, "kind": "needs", "thread": ref}
    # The page tells what needs to be told: once, and of what the server knows.
    for message in (json.loads(NEEDS), notice):
        worker.evaluate("(notice) => pushed(notice)", message)
    elsewhere(told, house)
    for message in (notice, {"id": "last", "kind": "needs", "thread": "chat-9"}):
        worker.evaluate("(notice) => pushed(notice)", message)
    wanted = [[f"{ref} needs you", "", f"/threads/{ref}"], ["chat-9 needs you", "", "/threads/chat-9"]]
    # Asked of the service worker: a page would close what the server knows nothing of, as the last.
    there = "registration.getNotifications().then((all) => all.map(({ title, body, data }) => [title, body, data]))"
    house.until(lambda: sorted(worker.evaluate(there)) == sorted(wanted), "what the page told, and the last")


def test_a_browser_without_a_push_service_says_so_and_nothing_is_changed(house: House, visitors: Visitors) -> None:
    visitor = notified(visitors, house)
    page = visitor.page
    button = page.locator("#push button")
    expect(button).to_have_text("Also while no page is open")
    button.click()
    # The Chromium of a test has none, and says so.
    visitor.forgive("Push API in incognito mode")
    expect(page.locator("#push .problem")).to_contain_text("This browser or its network does not allow push")
    expect(button).to_have_text("Also while no page is open")
    assert house.get("/push")["subscriptions"] == []
    axe(page)
    page.locator("#notify button").click()
    expect(button).to_be_hidden()


def test_it_is_turned_on_with_the_choice_of_the_title_and_off_again(house: House, visitors: Visitors) -> None:
    visitor = visitors(house)
    visitor.context.grant_permissions(["notifications"], origin=house.address)
    visitor.context.add_init_script(SUBSCRIBES)
    page = visitor.open("/settings")
    button, notify = page.locator("#push button"), page.locator("#notify")
    expect(button).to_be_hidden()
    notify.locator("button").click()
    button.click()
    expect(button).to_have_text("Only while a page is open")

    def titles() -> list[bool]:
        return [each["title"] for each in house.get("/push")["subscriptions"]]

    assert titles() == [False]
    notify.locator("input").check()
    house.until(lambda: titles() == [True], "the title is wanted")
    button.click()
    expect(button).to_have_text("Also while no page is open")
    assert titles() == []
    # Off is off: who wants no notifications gets none by push.
    button.click()
    house.until(titles, "it is on again")
    notify.locator("button").click()
    house.until(lambda: titles() == [], "it went with the others")
    expect(page.locator("#push .problem")).to_be_empty()


def test_a_browser_that_gets_another_endpoint_tells_the_server(house: House, visitors: Visitors) -> None:
    former = {"endpoint": "https://push.invalid/former", "keys": KEYS, "title": True}
    known = house.post("/push/subscriptions", former)["id"]
    visitor = allowed(visitors, house)
    (worker,) = visitor.context.service_workers
    fresh = {"endpoint": "https://push.invalid/fresh", "keys": KEYS}
    worker.evaluate(
        """([endpoint, given]) => new Promise((done) => {
            const event = new Event('pushsubscriptionchange');
            event.waitUntil = done;
            event.oldSubscription = {endpoint};
            event.newSubscription = {toJSON: () => given};
            dispatchEvent(event);
        })""",
        [former["endpoint"], fresh],
    )
    (kept,) = house.get("/push")["subscriptions"]
    assert (kept["id"] != known, kept["title"]) == (True, True)


def test_a_browser_that_was_told_in_vain_is_shown_and_can_be_removed(house: House, visitors: Visitors) -> None:
    house.post("/push/subscriptions", {"endpoint": "https://push.invalid/secret", "keys": KEYS, "title": True})
    # The server of `clew up` pushes by itself: here it finds no service of that name.
    asked(house, chat(house))
    house.until(lambda: house.get("/push")["subscriptions"][0]["failure"], "it was given up")
    visitor = visitors(house)
    page = visitor.open("/settings")
    row = page.locator("tr", has_text="push.invalid")
    expect(row).to_contain_text("push.invalid was not found, so it was given up.")
    assert "secret" not in page.content()
    axe(page)
    row.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_without_the_extra_the_settings_say_how_to_get_it(tmp_path: Path, visitors: Visitors) -> None:
    missing = tmp_path / "packages" / "cryptography"
    missing.mkdir(parents=True)
    (missing / "__init__.py").write_text("raise ImportError('it is not installed here')")
    (root := tmp_path / "house").mkdir()
    with house(root, settings={"PYTHONPATH": str(missing.parent)}) as without:
        visitor = visitors(without)
        page = visitor.open("/settings")
        expect(page.locator("#no-push")).to_contain_text("pip install 'clew[push]'")
        expect(page.locator("#notify button")).to_be_visible()
        axe(page)
