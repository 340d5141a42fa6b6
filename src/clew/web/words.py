"""Values as people read them: times, durations, sizes and counts. The filters of the templates."""

import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

_AGO = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SIZES = ("B", "KB", "MB", "GB", "TB")
_KILO = 1_000
# Control characters except the tab, and those that change the direction or the width of what stands beside them.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]",
)


def age(at: float | None, now: float) -> str:
    """5 min ago, in 3 h."""
    if at is None:
        return ""
    passed = abs(now - at)
    if passed < 1:
        return "now"
    unit, name = next((unit, name) for unit, name in _AGO if passed >= unit)
    said = f"{int(passed // unit)} {name}"
    return f"{said} ago" if at < now else f"in {said}"


def moment(at: float | None, now: float, form: str = "age") -> Markup:
    """A time element. The page's script writes it in the reader's own zone and keeps its age right; without scripts it
    is an age, with the exact time as its title. `form` is age, clock or day."""
    if at is None:
        return Markup()
    exact = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Markup('<time datetime="{}" data-form="{}" title="{}">{}</time>').format(exact, form, exact, age(at, now))


def lasted(start: float | None, end: float | None) -> str:
    """340 ms, 12.3 s, 4 min 10 s, 2 h 5 min."""
    if start is None or end is None:
        return ""
    seconds = max(0.0, end - start)
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def size(count: float) -> str:
    """1.2 MB."""
    step = 0
    while count >= _KILO and step < len(_SIZES) - 1:
        count, step = count / _KILO, step + 1
    return f"{count:.0f} {_SIZES[step]}" if step == 0 else f"{count:.1f} {_SIZES[step]}"


def counted(count: int, what: str) -> str:
    """1 file, 2 files."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


_COMMAND = re.compile(r"`([^`\n]+)`")


def coded(text: str) -> Markup:
    """A sentence of Clew with its `commands` as code."""
    # After escaping, only the marks of code are markup.
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))


def plain(text: str) -> str:
    """Characters that cannot be seen, or that make text look like other text, by their numbers: ⟨U+202E⟩."""
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def visible(text: str) -> Markup:
    """The same as markup, in which those numbers stand out."""
    marked = _HIDDEN.sub(lambda found: f'<span class="odd">⟨U+{ord(found[0]):04X}⟩</span>', str(escape(text)))
    # Escaped before, so that the only markup is that of the marks.
    return Markup(marked)
