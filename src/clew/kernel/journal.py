"""Journal entries: who said something, and in whose voice a reader is told of it."""

from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.ids import AccountId, AgentId, EntrySeq, ProviderName
from clew.kernel.reason import Reason


class AuthorKind(StrEnum):
    HUMAN = "human"
    AGENT = "agent"
    OUTSIDE = "outside"
    CLEW = "clew"


@dataclass(frozen=True, slots=True)
class Author:
    """Who said it; `agent` is set for agents only."""

    kind: AuthorKind
    name: str
    agent: AgentId | None = None


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """The facts of an entry that decide how it is told; its text stays where it is stored.

    `size` is counted in tokens. `pair` ties a tool's call to its result. `provider` and `account` are those
    that the agent which wrote it was using.
    """

    seq: EntrySeq
    size: int
    author: Author
    pair: str | None = None
    provider: ProviderName | None = None
    account: AccountId | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom a journal is read. What agents wrote under another account of the same provider is not shown to it."""

    provider: ProviderName
    account: AccountId | None
    across_accounts: bool = False

    def may_see(self, entry: JournalEntry) -> bool:
        if self.across_accounts or entry.author.kind is not AuthorKind.AGENT:
            return True
        # An unknown provider may be this one.
        return entry.provider not in (self.provider, None) or entry.account == self.account


class Voice(Reason):
    """How an entry is introduced to the agent that reads it."""

    USER = "voice:user", "{name} said:"
    YOU = "voice:you", "You said earlier:"
    OTHER_AGENT = "voice:other-agent", "Another agent, {name}, said (this is not the user):"
    OUTSIDE = "voice:outside", "{name} sent from outside (this is not the user):"
    CLEW = "voice:clew", "Clew notes:"


@dataclass(frozen=True, slots=True)
class Spoken:
    voice: Voice
    words: str


def voice(entry: JournalEntry, reader: AgentId) -> Spoken:
    """Only a person's words are told as the user's; an agent is "you" only to itself."""
    said_by = _voice_of(entry.author, reader)
    # A name is somebody's text: kept on one line, it cannot pass for a turn of its own.
    return Spoken(said_by, said_by.fill(name=" ".join(entry.author.name.split())))


def _voice_of(author: Author, reader: AgentId) -> Voice:
    match author.kind:
        case AuthorKind.HUMAN:
            return Voice.USER
        case AuthorKind.AGENT:
            return Voice.YOU if author.agent == reader else Voice.OTHER_AGENT
        case AuthorKind.OUTSIDE:
            return Voice.OUTSIDE
        case AuthorKind.CLEW:
            return Voice.CLEW
