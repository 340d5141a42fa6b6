"""The base of all reasons: a code that programs match and a sentence that people read."""

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Base of the closed sets of reasons. Each module defines its own set beside the logic that uses it.

    A member is written `NAME = "subject:what", "sentence"`. `fill` replaces `{field.attribute}` places in the sentence,
    so that formatting costs nothing until the sentence is read.
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
