"""The findings of the rules about a candidate session: a closed set, each with its effect."""

from enum import IntEnum, StrEnum
from typing import Self

from clew.kernel.reason import Reason


class Effect(IntEnum):
    """What a finding means for a candidate. The greatest effect decides how the candidate can be used."""

    NOTE = 0
    FORK = 1
    CARRY = 2
    WAIT = 3
    OUT = 4


class RuleName(StrEnum):
    """The rules, in the order in which each candidate is checked."""

    RECORD = "record"
    RESET = "reset"
    LANE = "lane"
    SCOPE = "scope"
    FRESH_START = "fresh-start"
    PROVIDER = "provider"
    ACCOUNT = "account"
    BUSY = "busy"
    STATE = "state"
    CURSOR = "cursor"
    ABILITY = "ability"
    JOURNAL = "journal"
    RUNTIME = "runtime"
    ARCHIVE = "archive"
    DIRECTORY = "directory"
    LIMITS = "limits"
    MODEL = "model"
    MODE = "mode"
    INSTRUCTIONS = "instructions"
    TOOLS = "tools"
    KEY = "key"


class RuleReason(Reason):
    """The findings. A rule without a finding fits."""

    rule: RuleName
    effect: Effect

    def __new__(cls, code: str, rule: RuleName, effect: Effect, sentence: str) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.rule = rule
        member.effect = effect
        member.sentence = sentence
        return member

    RESET = (
        "reset:barred",
        RuleName.RESET,
        Effect.OUT,
        "The wake starts a new conversation, without any earlier session.",
    )
    LANE_OTHER = "lane:other", RuleName.LANE, Effect.OUT, "It belongs to lane {session.lane}, not to this one."
    SCOPE_OTHER = "scope:other", RuleName.SCOPE, Effect.OUT, "Its context is kept under another scope than this run's."
    BEFORE_FRESH_START = (
        "fresh-start:before",
        RuleName.FRESH_START,
        Effect.OUT,
        "It is from before the lane's last fresh start.",
    )
    SUPERSEDED = (
        "record:superseded",
        RuleName.RECORD,
        Effect.OUT,
        "A newer generation records the same session, and only that one counts.",
    )
    POISONED = "session:poisoned", RuleName.STATE, Effect.OUT, "It is poisoned: its agent can no longer continue it."
    RETIRED = "session:retired", RuleName.STATE, Effect.OUT, "It was retired."
    MOVED = (
        "session:moved",
        RuleName.STATE,
        Effect.OUT,
        "Its conversation was moved and continues in a newer generation.",
    )
    SEALED = "session:sealed", RuleName.STATE, Effect.WAIT, "It is sealed while it moves to another machine."
    LOST = "session:lost", RuleName.STATE, Effect.CARRY, "The agent's own store no longer has it."
    PROVIDER_OTHER = (
        "provider:other",
        RuleName.PROVIDER,
        Effect.OUT,
        "It was made by {session.provider}; this run uses {wanted.here.provider}.",
    )
    ACCOUNT_OTHER = (
        "account:other",
        RuleName.ACCOUNT,
        Effect.OUT,
        "It was made with {session.whose}; this run uses {wanted.here.whose}.",
    )
    NEVER_CAPTURED = (
        "session:never-captured",
        RuleName.CURSOR,
        Effect.OUT,
        "No session was kept of the turns before: the agent named none, or one that another thread holds.",
    )
    CURSOR_UNREADABLE = (
        "cursor:unreadable",
        RuleName.CURSOR,
        Effect.OUT,
        "Its stored cursor cannot be read by this provider: {session.cursor_words}.",
    )
    ID_SHAPE = (
        "cursor:id-shape",
        RuleName.CURSOR,
        Effect.OUT,
        "Its id {session.cursor.native_id} does not have the shape of this provider's ids.",
    )
    CANNOT_RESUME = (
        "provider:cannot-resume",
        RuleName.ABILITY,
        Effect.OUT,
        "{wanted.here.provider} cannot resume any session.",
    )
    BEYOND_JOURNAL = (
        "journal:beyond",
        RuleName.JOURNAL,
        Effect.OUT,
        "It claims to have seen entry {session.seen} of a journal that ends at {wanted.situation.head}.",
    )
    RUNTIME_UNKNOWN = "runtime:unknown", RuleName.RUNTIME, Effect.OUT, "It is not known on which runtime it was made."
    RUNTIME_OTHER = (
        "runtime:other",
        RuleName.RUNTIME,
        Effect.CARRY,
        "It is on runtime {session.runtime}; this run is on {wanted.here.runtime}.",
    )
    TRANSFER_OFF = (
        "transfer:off",
        RuleName.ARCHIVE,
        Effect.OUT,
        "The policy does not move sessions between machines.",
    )
    CANNOT_RESTORE = (
        "archive:cannot-restore",
        RuleName.ARCHIVE,
        Effect.OUT,
        "{wanted.here.provider} cannot restore an archive here.",
    )
    ARCHIVE_MISSING = (
        "archive:missing",
        RuleName.ARCHIVE,
        Effect.OUT,
        "There is no archive of it.",
    )
    ARCHIVE_OPTED_OUT = (
        "archive:opted-out",
        RuleName.ARCHIVE,
        Effect.OUT,
        "Its thread keeps no archives.",
    )
    ARCHIVE_CORRUPT = (
        "archive:corrupt",
        RuleName.ARCHIVE,
        Effect.OUT,
        "Its archive is damaged.",
    )
    ARCHIVE_VERSION = (
        "archive:version",
        RuleName.ARCHIVE,
        Effect.OUT,
        "Its archive has a format that is unknown here ({session.archive.format}).",
    )
    ARCHIVE_BEYOND_JOURNAL = (
        "archive:beyond-journal",
        RuleName.ARCHIVE,
        Effect.OUT,
        "Its archive has seen entry {session.archive.seen} of a journal that ends at {wanted.situation.head}.",
    )
    RESTORED_INTO = (
        "directory:restored-into",
        RuleName.DIRECTORY,
        Effect.NOTE,
        "It worked in {session.directory}; its archive is restored into {wanted.directory}.",
    )
    DIRECTORY_FORK = (
        "directory:fork",
        RuleName.DIRECTORY,
        Effect.FORK,
        "It works in {session.directory}; its history is forked into {wanted.directory}.",
    )
    DIRECTORY_MOVES = (
        "directory:moves",
        RuleName.DIRECTORY,
        Effect.NOTE,
        "It worked in {session.directory}; it can be resumed in {wanted.directory}.",
    )
    DIRECTORY_FIXED = (
        "directory:fixed",
        RuleName.DIRECTORY,
        Effect.OUT,
        "It works in {session.directory} and cannot be brought into {wanted.directory}.",
    )
    OVER_TURNS = (
        "limit:turns",
        RuleName.LIMITS,
        Effect.OUT,
        "It has {session.turns} turns; the limit is {wanted.policy.limits.turns}.",
    )
    OVER_TOKENS = (
        "limit:tokens",
        RuleName.LIMITS,
        Effect.OUT,
        "It has {session.tokens} tokens; the limit is {wanted.policy.limits.tokens}.",
    )
    OVER_SIZE = (
        "limit:size",
        RuleName.LIMITS,
        Effect.OUT,
        "It has {session.size} bytes; the limit is {wanted.policy.limits.size}.",
    )
    OVER_AGE = (
        "limit:age",
        RuleName.LIMITS,
        Effect.OUT,
        "It is older than the limit of {wanted.policy.limits.age} seconds.",
    )
    LIMIT_WAIVED = "limit:waived", RuleName.LIMITS, Effect.NOTE, "It is over its limits, but it was asked for by name."
    MODEL_CHANGES = (
        "model:changes",
        RuleName.MODEL,
        Effect.NOTE,
        "Its model {session.model} becomes {wanted.here.model}.",
    )
    MODEL_FORK = (
        "model:fork",
        RuleName.MODEL,
        Effect.FORK,
        "Its model is {session.model}; its history is forked into a session with {wanted.here.model}.",
    )
    MODEL_FIXED = (
        "model:fixed",
        RuleName.MODEL,
        Effect.OUT,
        "Its model is {session.model} and cannot become {wanted.here.model}.",
    )
    MODEL_POLICY = (
        "model:policy",
        RuleName.MODEL,
        Effect.OUT,
        "Its model is {session.model}, not {wanted.here.model}; the policy starts a new session for that.",
    )
    MODE_REAPPLIED = "mode:reapplied", RuleName.MODE, Effect.NOTE, "Its mode {session.mode} becomes {wanted.mode}."
    MODE_KEPT = "mode:kept", RuleName.MODE, Effect.NOTE, "Its mode stays {session.mode}, stricter than {wanted.mode}."
    MODE_UNVERIFIABLE = (
        "mode:unverifiable",
        RuleName.MODE,
        Effect.OUT,
        "Its mode {session.mode} would have to become {wanted.mode}, and its agent does not say which mode it has.",
    )
    MODE_FIXED = "mode:fixed", RuleName.MODE, Effect.OUT, "Its mode {session.mode} cannot be brought to {wanted.mode}."
    BUSY = "session:busy", RuleName.BUSY, Effect.WAIT, "It is in use by {session.busy_with}."
    BUSY_FORK = (
        "session:busy-fork",
        RuleName.BUSY,
        Effect.FORK,
        "It is in use by {session.busy_with}; its history is forked.",
    )
    INSTRUCTIONS_DRIFT = (
        "instructions:drift",
        RuleName.INSTRUCTIONS,
        Effect.NOTE,
        "The instructions have changed; the current ones are given.",
    )
    TOOLS_DRIFT = "tools:drift", RuleName.TOOLS, Effect.NOTE, "The list of tools has changed; the current one is given."
    KEY_DRIFT = (
        "key:drift",
        RuleName.KEY,
        Effect.NOTE,
        "The key has changed since this session was last used; the session continues.",
    )
