"""Journal entries: who wrote one, and how it is introduced to the agent that reads it."""

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
    """Who wrote it; `agent` is set for agents only."""

    kind: AuthorKind
    name: str
    agent: AgentId | None = None


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """The facts about an entry that decide how it is presented; its text stays in the store.

    `size` is in tokens. `pair` ties a tool's call to its result. `provider` and `account` are those that the writing
    agent used. `replaces` is the earlier entry that it takes the place of.
    """

    seq: EntrySeq
    size: int
    author: Author
    pair: str | None = None
    provider: ProviderName | None = None
    account: AccountId | None = None
    replaces: EntrySeq | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """The reading agent. It does not see what agents wrote under another account of the same provider."""

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
    """Only a person's message is presented as the user's. An agent is "you" only to itself."""
    said_by = _voice_of(entry.author, reader)
    # A name is untrusted text: on one line it cannot pass for a turn of its own.
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
