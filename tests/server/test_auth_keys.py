"""Tickets are good once and for a while; a cookie ends by itself and with its token."""

from clew.server.auth import COOKIE_LASTS, TICKET_LASTS, Keys


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_ticket_is_good_once() -> None:
    keys = Keys("secret")
    ticket, _ = keys.issue_ticket()
    cookie = keys.redeem(ticket)
    assert cookie is not None
    assert keys.is_cookie(cookie)
    assert keys.redeem(ticket) is None
    assert keys.redeem("") is None
    assert keys.redeem("\ud800") is None


def test_a_ticket_ends() -> None:
    clock = Clock()
    keys = Keys("secret", clock)
    ticket, ends = keys.issue_ticket()
    assert ends == clock.now + TICKET_LASTS
    clock.now = ends
    assert keys.redeem(ticket) is None


def test_tickets_do_not_pile_up() -> None:
    keys = Keys("secret")
    first, _ = keys.issue_ticket()
    later = [keys.issue_ticket()[0] for _ in range(64)]
    assert keys.redeem(first) is None
    assert all(keys.redeem(ticket) for ticket in later)


def test_a_cookie_holds_across_restarts_and_ends_with_its_token() -> None:
    clock = Clock()
    keys = Keys("secret", clock)
    cookie = keys.redeem(keys.issue_ticket()[0])
    assert cookie is not None
    assert Keys("secret", clock).is_cookie(cookie)
    assert not Keys("another", clock).is_cookie(cookie)
    clock.now += COOKIE_LASTS
    assert not keys.is_cookie(cookie)


def test_what_is_no_cookie_is_none() -> None:
    clock = Clock()
    keys = Keys("secret", clock)
    cookie = keys.redeem(keys.issue_ticket()[0])
    assert cookie is not None
    ends, nonce, signature = cookie.split(".")
    later = f"{int(ends) + 1}.{nonce}.{signature}"
    for forged in ("", ".", "..", "secret", "x.y.z", later, f"{cookie}0", f"{ends}.{nonce}.", "\udfff.a.b", "é"):
        assert not keys.is_cookie(forged), forged


def test_the_token_is_not_shown() -> None:
    assert "secret" not in repr(Keys("secret"))
