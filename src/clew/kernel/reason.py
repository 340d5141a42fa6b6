"""The shape of every reason: a code a program matches and a sentence a person reads."""

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Base of the closed sets of reasons; each room lists its own beside the logic that gives them.

    A member is written `NAME = "subject:what", "sentence"`. A sentence may hold `{field.attribute}`
    places that `fill` takes from the facts at hand, so that naming them costs nothing until read.
    """

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    def __str__(self) -> str:
        return self.code

    @property
    def code(self) -> str:
        return str(self._value_)

    def fill(self, **facts: object) -> str:
        return self.sentence.format(**facts)
