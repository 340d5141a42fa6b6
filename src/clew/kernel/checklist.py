"""Checklists: whether one has anything to check. Decided from its text, before any model call."""

BULLETS = ("-", "*", "+")
BOXES = ("[]", "[x]", "[X]")
HEADING_LEVELS = range(1, 7)


def nothing_to_check(checklist: str | None) -> bool:
    """True for a checklist of blanks, headings, empty bullets and comments. An absent one is not empty."""
    if checklist is None:
        return False
    return all(_is_heading(line) or _is_empty_item(line) for line in _without_comments(checklist).splitlines())


def _without_comments(text: str) -> str:
    shown, opening, rest = text.partition("<!--")
    parts = [shown]
    while opening:
        # A comment that is never closed hides everything after it, as it does when the text is rendered.
        _, _, rest = rest.partition("-->")
        shown, opening, rest = rest.partition("<!--")
        parts.append(shown)
    return "".join(parts)


def _is_heading(line: str) -> bool:
    text = line.strip()
    title = text.lstrip("#")
    return len(text) - len(title) in HEADING_LEVELS and (not title or title[0].isspace())


def _is_empty_item(line: str) -> bool:
    """True when the line has only list markers, or is blank."""
    return all(_is_mark(word) for word in _words(line))


def _words(line: str) -> list[str]:
    # `[ ]` contains a blank, and split() would break it in two.
    return line.replace("[ ]", "[]").split()


def _is_mark(word: str) -> bool:
    return word in BULLETS or word in BOXES or (word[-1] in ".)" and word[:-1].isdecimal())
