"""Uploads over HTTP: in pieces up to their limit, refused beyond it, and read as bytes that do nothing."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from clew.protocol.files import LARGEST_FILE
from tests.up.kit import Up, up


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("uploads") / "data") as started:
        yield started
        assert started.stop() == 0


def in_pieces(size: int) -> Iterator[bytes]:
    piece = bytes(64 * 1024)
    while size > 0:
        yield piece[:size]
        size -= len(piece)


def upload(at: Up, content: bytes | Iterator[bytes], name: str = "a.bin", **headers: str) -> httpx2.Response:
    with at.http() as http:
        return http.post("/files", params={"name": name}, content=content, headers=headers)


@pytest.mark.case("U10")
def test_the_largest_file_arrives_whole_in_pieces(at: Up) -> None:
    kept = upload(at, in_pieces(LARGEST_FILE)).json()
    assert kept["size"] == LARGEST_FILE
    with at.http() as http:
        assert http.get(f"/files/{kept['id']}").content == bytes(LARGEST_FILE)


@pytest.mark.parametrize("whole", [True, False])
def test_one_byte_more_is_refused(at: Up, whole: bool) -> None:
    content = bytes(LARGEST_FILE + 1) if whole else in_pieces(LARGEST_FILE + 1)
    answer = upload(at, content)
    assert (answer.status_code, answer.json()["code"]) == (413, "server:body-too-large")
    assert "10 MB" in answer.json()["detail"]
    # The server is as it was.
    assert upload(at, b"small").status_code == 201


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("image/png", "image/png"),
        ("Text/HTML; charset=utf-8", "text/html"),
        ("", "application/octet-stream"),
        ("no type", "application/octet-stream"),
        ("x" * 200 + "/y", "application/octet-stream"),
    ],
)
def test_a_media_type_is_kept_where_it_is_one(at: Up, given: str, kind: str) -> None:
    assert upload(at, b"x", **{"content-type": given}).json()["kind"] == kind


def test_what_is_no_upload_is_refused(at: Up) -> None:
    with at.http() as http:
        assert http.post("/files", content=b"x").status_code == 422
        assert http.post("/files?name=", content=b"x").status_code == 422
        assert http.get("/files/fl_none").json()["code"] == "store:no-such-file"
        assert http.post("/threads/x/words", content=b"x", headers={"content-type": "text/plain"}).status_code == 415
    with httpx2.Client() as stranger:
        assert stranger.post(f"{at.address}/api/v1/files?name=x", content=b"x").status_code == 401


def test_an_empty_file_is_one_too(at: Up, tmp_path: Path) -> None:
    kept = upload(at, b"", name=str(tmp_path / "empty.txt")).json()
    assert (kept["name"], kept["size"]) == ("empty.txt", 0)
