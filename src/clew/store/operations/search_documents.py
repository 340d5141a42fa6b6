"""Documents of the search: one for each text, with its words in the index of the database."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, text

from clew.kernel import Instant
from clew.store.engine.statement import POSTGRESQL, Statement

GONE = "gone"
"""SQLite: the kind of a document that was removed."""

_PLACES = 255
"""Places of one word that PostgreSQL keeps."""

_ID_BITS = 20
"""A document's id is its time in milliseconds, and so many bits that tell documents of one millisecond apart."""

_LAST_MILLISECOND = 2 ** (62 - _ID_BITS) - 1


@dataclass(frozen=True, slots=True)
class Document:
    """A text of a thread or of a run (`source`): a title, an entry, or the lines `seq` to `through` of a log."""

    kind: str
    source: str
    seq: int
    through: int
    at: Instant
    words: list[str]
    marks: tuple[str, ...]


def forgetting(which: str) -> Statement:
    """The statement that removes the documents of which this condition holds.

    FTS5 keeps the words of a document that is gone, because only with the old text could it forget them. So its row
    stays as well, and no other document gets its id."""
    return Statement(
        lambda dialect: text(
            f"DELETE FROM search_documents WHERE {which}"
            if dialect == POSTGRESQL
            else f"UPDATE search_documents SET kind = '{GONE}', source = id, seq = 0 WHERE {which}"
        )
    )


# Documents of one millisecond get the ids that follow each other. There is one indexer at a time, so no two take the
# same.
_NEXT_ID = (
    "COALESCE(MAX(id), CAST(:base AS bigint) - 1) + 1, :kind, :source, CAST(:seq AS integer), CAST(:through AS integer)"
)
_OF_THAT_TIME = "FROM search_documents WHERE id >= CAST(:base AS bigint) AND id < CAST(:end AS bigint)"
_add = Statement(
    lambda dialect: text(
        "INSERT INTO search_documents (id, kind, source, seq, through, words)"
        f" SELECT {_NEXT_ID}, CAST(:words AS tsvector) {_OF_THAT_TIME} ON CONFLICT (kind, source, seq) DO NOTHING"
        if dialect == POSTGRESQL
        else f"INSERT INTO search_documents (id, kind, source, seq, through) SELECT {_NEXT_ID} {_OF_THAT_TIME}"
        " ON CONFLICT (kind, source, seq) DO NOTHING RETURNING id"
    )
)
_add_words = Statement(lambda _: text("INSERT INTO search_words (rowid, words) VALUES (:id, :words)"))


def write_documents(connection: Connection, documents: Iterable[Document]) -> None:
    """Add them; one that is there already stays as it is."""
    # In the order of their ids: FTS5 writes a new segment whenever an id is smaller than the one before.
    ordered = sorted(documents, key=lambda document: document.at)
    if connection.dialect.name == POSTGRESQL:
        _add.defer_all(connection, ({**_values(each), "words": _tsvector(each)} for each in ordered))
        return
    for document in ordered:
        for row in _add.rows(connection, **_values(document)):
            _add_words.count(connection, id=row["id"], words=" ".join((*document.words, *document.marks)))


def _values(document: Document) -> Mapping[str, object]:
    base = max(0, min(int(document.at * 1000), _LAST_MILLISECOND)) << _ID_BITS
    return {
        "base": base,
        "end": base + (1 << _ID_BITS),
        "kind": document.kind,
        "source": document.source,
        "seq": document.seq,
        "through": document.through,
    }


def _tsvector(document: Document) -> str:
    """The words with their places, as PostgreSQL writes a tsvector. No word has a quote in it."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(document.words, start=1):
        places.setdefault(word, []).append(place)
    return " ".join(_lexemes(places, document.marks))


def _lexemes(places: Mapping[str, list[int]], marks: tuple[str, ...]) -> Iterator[str]:
    for word, where in places.items():
        yield f"'{word}':{','.join(map(str, where[:_PLACES]))}"
    yield from (f"'{each}'" for each in marks)
