"""Texts as both databases can keep them: an agent may say anything, and losing its words is worse than changing two."""


def keepable(text: str) -> str:
    """The same text without what cannot be stored: a NUL becomes its picture, half a character a question mark."""
    if "\0" in text:
        text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
