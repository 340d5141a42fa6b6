"""Faults: errors that reach the command line, the API and the pages in the same words."""


class Fault(Exception):
    """What went wrong, why, and what to do next. The class says the code; `words` and `remedy` are for people."""

    code = "fault"

    def __init__(self, words: str, remedy: str) -> None:
        super().__init__(words)
        self.words = words
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.words} {self.remedy}".strip()
