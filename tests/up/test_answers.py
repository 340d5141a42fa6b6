"""An answer reaches who asked, also when it comes before all that was asked had been read."""

import http.client
from pathlib import Path
from urllib.parse import urlsplit

from tests.up.kit import LONG, up

_PARTS = 3_000
_PART = b" " * 1_000


def test_a_refusal_is_read_by_who_still_sends_and_the_connection_goes_on(tmp_path: Path) -> None:
    with up(tmp_path / "data") as clew:
        where = urlsplit(clew.address).netloc
        line = http.client.HTTPConnection(where, timeout=LONG)
        bearer = {"Authorization": f"Bearer {clew.token}"}
        refusals = [
            ("/api/v1/threads/a%03b/words", bearer, 100, 400),
            ("/api/v1/agents", bearer, _PARTS, 413),
            ("/api/v1/agents", {}, _PARTS, 401),
        ]
        for path, key, parts, status in refusals:
            line.putrequest("POST", path)
            headers = {"Content-Type": "application/json", "Content-Length": str(parts * len(_PART)), **key}
            for name, value in headers.items():
                line.putheader(name, value)
            line.endheaders()
            for _ in range(parts):
                line.send(_PART)
            answer = line.getresponse()
            assert (answer.status, bool(answer.read())) == (status, True)
        assert line.sock is not None
        line.request("GET", "/api/v1/agents", headers=bearer)
        assert line.getresponse().status == 200
        line.close()
