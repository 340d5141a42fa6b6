"""What is printed: the sums, and of every word that went wrong enough to see how and to do it again."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.providers.loopback.heard import Role
from tests.story.boundary.conversations import Asked
from tests.story.boundary.judging import Shown, Verdict
from tests.story.boundary.words import Said

if TYPE_CHECKING:
    from tests.story.boundary.ground import Ground
    from tests.story.boundary.rounds import Outcome

_LAST = 6


def describe(ground: "Ground", said: Said, later: Said, log: Sequence[Asked], shown: Shown) -> str:
    lines = [
        f"  said {said.word.token} in {said.ref}, then {later.word.token}",
        f"  a person is shown: {'held: ' if shown.held else ''}{shown.words!r}{'' if shown.settled else ', unsettled'}",
    ]
    mine = [each for each in log if each.times(said.word.token) or each.times(later.word.token)]
    sessions = {each.session for each in mine}
    for each in [each for each in log if each.session in sessions][-_LAST:]:
        lines.append(f"  model asked in {each.session} at {each.at - said.posted:+.3f} s after the word:")
        lines += [f"    {'> ' if turn.role is Role.ASSISTANT else ''}{_line(turn.text)}" for turn in each.turns[-5:]]
    with suppress(Exception):
        page = ground.house.get(f"/threads/{said.ref}?limit=20")
        for run in reversed(page["runs"][:5]):
            lines.append(f"  run {run['id']} {run['state']}: {run['decision']}; {run['words']}")
            lines += [f"    {line}" for line in _why(ground, run["id"])]
    return "\n".join(lines)


def _why(ground: "Ground", run: str) -> Iterable[str]:
    why = ground.house.get(f"/why/{run}")
    yield f"why: {why['headline']}"
    for event in ground.house.get(f"/runs/{run}/events"):
        if event["kind"] in ("step", "failed", "done"):
            yield f"{event['kind']} {_line(str(event['body']))}"


def _line(text: str) -> str:
    return " ".join(text.split())[:220]


def table(outcomes: Sequence["Outcome"]) -> str:
    """One line for each agent, and one for all of them."""
    agents = list(dict.fromkeys(each.combination.agent for each in outcomes))
    head = ("agent", "tries", "words", *map(str, Verdict), "falsely told", "cut at its end", "forgotten by its agent")
    rows = [_row(agent, [each for each in outcomes if each.combination.agent == agent]) for agent in agents]
    rows.append(_row("all", outcomes))
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)
    )


def _row(name: str, outcomes: Sequence["Outcome"]) -> tuple[str, ...]:
    judged = [one for each in outcomes for one in (each.word, each.later)]
    verdicts = Counter(each.verdict for each in judged)
    falsely, at_its_end = sum(bool(each.falsely) for each in judged), sum(each.at_its_end for each in judged)
    forgotten = sum(each.forgotten for each in judged)
    numbers = (len(outcomes), len(judged), *(verdicts[each] for each in Verdict), falsely, at_its_end, forgotten)
    return name, *map(str, numbers)


def failures(outcomes: Iterable["Outcome"], seed: str) -> str:
    parts = []
    for each in outcomes:
        if not each.good:
            after = "before" if each.after is None else f"{1000 * each.after:.0f} ms after"
            struck = "" if each.disturbed else f"struck {after} the prompt was let out, "
            found = f"{each.word.verdict}; {each.later.verdict}"
            parts.append(f"{each.combination}, {each.what} ({struck}seed {seed}): {found}")
            parts += [f"  falsely told: {words}" for words in (*each.word.falsely, *each.later.falsely)]
            parts.append(each.detail)
    return "\n".join(parts)


def worst(outcomes: Iterable["Outcome"]) -> Counter[str]:
    """How often each combination went wrong."""
    return Counter(str(each.combination) for each in outcomes if not each.good)
