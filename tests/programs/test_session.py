"""Open requests of an agent: each part is answered once, and a request when all its parts are."""

from clew.kernel import ApprovalId
from clew.programs.session import OpenRequests, Request

ONE, TWO, THREE = (ApprovalId(each) for each in ("one", "two", "three"))


def test_a_request_is_answered_when_all_its_parts_are() -> None:
    requests: OpenRequests[str] = OpenRequests()
    requests.add(Request(7, "about", {ONE: "first", TWO: "second"}))
    first = requests.record(TWO, "yes")
    assert first is not None
    assert (first.is_answered, bool(requests)) == (False, True)
    assert requests.record(TWO, "again") is None, "each part is answered once"
    assert requests.record(ONE, None) is first
    assert (first.is_answered, bool(requests)) == (True, False)
    assert first.answers == {TWO: "yes", ONE: None}


def test_a_request_that_is_withdrawn_can_not_be_answered() -> None:
    requests: OpenRequests[str] = OpenRequests()
    requests.add(Request(7, "about", {ONE: "", TWO: ""}))
    requests.add(Request("8", "other", {THREE: ""}))
    requests.withdraw(7)
    assert requests.record(ONE, "yes") is None
    assert requests
    requests.clear()
    assert requests.record(THREE, "yes") is None
    assert not requests
