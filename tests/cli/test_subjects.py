"""Outside subjects, as they are typed."""

import pytest

from clew.protocol.views import Spoken
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.stub import Stub

PULL = "github:acme/app#12"
THREAD = "/threads/github%3Aacme%2Fapp%2312"


@pytest.mark.case("W14")
def test_an_event_of_a_subject_wakes_an_agent(stub: Stub, capfd: pytest.CaptureFixture[str]) -> None:
    stub.on("POST", "/wakes", samples.WAKE)
    assert here(capfd, "wake", "ada", "Review wanted.", "--subject", PULL, "--project", "web").status == 0
    assert here(capfd, "wake", "ada").status == 0
    first, second = stub.bodies("POST", "/wakes")
    assert (first["subject"], first["project"], first["thread"]) == (PULL, "web", None)
    assert "subject" not in second


@pytest.mark.case("W14")
def test_its_thread_is_called_by_the_subject(stub: Stub, capfd: pytest.CaptureFixture[str]) -> None:
    stub.on("GET", THREAD, samples.PAGE)
    stub.on("POST", f"{THREAD}/words", Spoken(2, samples.WAKE))
    assert here(capfd, "thread", "show", PULL).status == 0
    assert here(capfd, "say", PULL, "Leave it alone.").status == 0
