"""A round: a word in each lane, something killed at its moment, and then the checker's verdict on every word."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tests.story.boundary.conversations import Asked
from tests.story.boundary.ground import Delays, Ground, Lane
from tests.story.boundary.judging import Judged, Verdict, judge
from tests.story.boundary.matrix import Combination, Round, Trouble, Victim
from tests.story.boundary.moments import Anchor, Moment
from tests.story.boundary.reporting import describe
from tests.story.boundary.striking import descendants, kill, kill_soon, programs_in, servers_of
from tests.story.boundary.words import SLOW, Said

LONGEST = 24
"""Words that are said in one chat before another is opened."""
_SOON = 0.3
"""Seconds that are waited for something to kill."""
_ENDS = 0.5
"""Seconds that an agent may take to write down the end of a turn, after the last of its model's answer."""
_AIMS = 0.02
"""Seconds before a strike at which it is looked whom it is to hit."""
_LATE = 5.0
"""Seconds that are waited for what a moment hangs on, beyond when it is expected."""
SHARED = frozenset({Victim.SERVER, Victim.DAEMON, Victim.EVERYTHING})
"""What dies for all lanes at once."""


@dataclass
class Try:
    lane: Lane
    said: Said
    moment: Moment | None = None
    trouble: Trouble | None = None
    rule: str = ""
    """What the trouble hangs on: the word, or its session."""
    came: bool = True
    """Whether the trouble came."""
    retried: bool = False
    """A person asked for it again after it was held or given up."""

    def __str__(self) -> str:
        retried = ", a person asked again" if self.retried else ""
        return f"{self.moment or self.trouble}{'' if self.came else ', which never came'}{retried}"


@dataclass(frozen=True, slots=True)
class Outcome:
    combination: Combination
    what: str
    """The moment or the trouble, and whether a person asked again."""
    word: Judged
    later: Judged
    after: float | None
    """Seconds from when the prompt was let out to the strike, as it came to be; None where it was not out by then."""
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.word.good and self.later.good

    @property
    def disturbed(self) -> bool:
        """Nothing was killed; the connection was disturbed."""
        return self.combination.victim is Victim.CONNECTION


def play(ground: Ground, asked: Round, drawn: random.Random, retries: bool = True) -> list[Outcome]:
    """Each try of the round, judged."""
    combination = asked.combination
    kind = (combination.resumed, combination.cold)
    lanes = ground.lanes[: len(asked)]
    if not ground.delays.setdefault(kind, Delays()).known:
        _ready(ground, lanes, combination)
        _calm(ground, lanes, kind)
    _ready(ground, lanes, combination)
    mark = ground.log.mark()
    tries = [Try(lane, Said(ground.words.new(SLOW), lane.ref)) for lane in lanes]
    for number, each in enumerate(tries):
        each.moment = asked.moments[number] if asked.moments else None
        each.trouble = asked.troubles[number] if asked.troubles else None
    _strike(ground, tries, combination)
    for each in tries:
        ground.say_again(each.said)
    rested = ground.at_rest(lanes)
    for each in tries:
        if each.rule and ground.taps is not None:
            each.came = ground.taps.calm(each.rule)
    ground.learn([each.said for each in tries], kind, mark)
    if retries:
        rested &= _ask_again(ground, tries, mark, drawn) | rested
    later = [ground.say(lane, ground.words.new()) for lane in lanes]
    rested &= ground.at_rest(lanes)
    return [_judged(ground, each, said, combination, mark, rested) for each, said in zip(tries, later, strict=True)]


def _ready(ground: Ground, lanes: Sequence[Lane], combination: Combination) -> None:
    """New chats, or such as have had a turn; the server and its agents just started, or warm from the last turn."""
    for lane in lanes:
        if not combination.resumed or not lane.ref or lane.words >= LONGEST:
            ground.open_chat(lane)
    fresh = [lane for lane in lanes if not lane.words]
    if combination.resumed and fresh:
        _calm(ground, fresh, (False, False))
    if combination.cold:
        ground.restart()


def _calm(ground: Ground, lanes: Sequence[Lane], kind: tuple[bool, bool]) -> None:
    """A word that nobody disturbs: how long it takes is learned, and the chat has a session."""
    mark = ground.log.mark()
    said = [ground.say(lane, ground.words.new()) for lane in lanes]
    rested = ground.at_rest(lanes)
    for lane, each in zip(lanes, said, strict=True):
        found = judge(each.word, ground.log.since(mark), ground.shown(each, each.ref in rested), lane.history)
        assert found.verdict is Verdict.ONCE, (lane, each, found)
    ground.learn(said, kind, mark)


# ---------------------------------------------------------------- the strike


def _strike(ground: Ground, tries: Sequence[Try], combination: Combination) -> None:
    delays = ground.delays[combination.resumed, combination.cold]
    mark = ground.log.mark()
    _lay_rules(ground, tries)
    if combination.victim in SHARED:
        _strike_all(ground, tries, combination.victim, delays)
    else:
        _at_once([partial(_strike_one, ground, each, combination.victim, delays, mark) for each in tries])


def _lay_rules(ground: Ground, tries: Sequence[Try]) -> None:
    for each in tries:
        if each.moment is not None and each.moment.anchor is Anchor.PIPE:
            assert ground.taps is not None
            ground.taps.hold(each.said.word.token)
        if each.trouble is not None:
            assert ground.taps is not None
            looks = each.trouble in (Trouble.LOOK_FAILS, Trouble.LOOK_HTML)
            each.rule = (ground.session_of(each.lane) if looks else None) or each.said.word.token
            ground.taps.disturb(each.rule, each.trouble)


def _strike_all(ground: Ground, tries: Sequence[Try], victim: Victim, delays: Delays) -> None:
    """One strike for all: each word is said so long before it that its own moment has come."""
    waits = [_expected(delays, each) for each in tries]
    at = time.monotonic() + max(waits) + 0.05

    def say(each: Try, wait: float) -> None:
        _sleep_until(at - wait)
        each.said = ground.say(each.lane, each.said.word)

    posts = [threading.Thread(target=say, args=pair) for pair in zip(tries, waits, strict=True)]
    for post in posts:
        post.start()
    lead, taps = tries[0], ground.taps
    if taps is not None and lead.moment is not None and lead.moment.ms >= 0:
        passed = taps.wait(lead.said.word.token, max(0.0, at - time.monotonic()) + _LATE)
        at = (passed or time.monotonic()) + lead.moment.ms / 1000
    struck = _kill_shared(ground, victim, at)
    for each in tries:
        if taps is not None:
            taps.drop(each.said.word.token)
    for post in posts:
        post.join()
    for each in tries:
        each.said.struck = struck
    if victim is not Victim.SERVER:
        ground.up()


def _kill_shared(ground: Ground, victim: Victim, at: float) -> float:
    """When it was done. What is to die is looked for just before, so that the strike itself takes no time."""
    pid = ground.house.pid
    _sleep_until(at - _AIMS)
    doomed = servers_of(pid) if victim is Victim.SERVER else descendants(pid)
    _sleep_until(at)
    struck = time.monotonic()
    if victim is Victim.SERVER:
        if not kill(doomed):
            kill_soon(lambda: servers_of(pid), _SOON)
            struck = time.monotonic()
        return struck
    kill([pid, *doomed] if victim is Victim.EVERYTHING else [pid])
    ground.house.kill()
    if victim is Victim.EVERYTHING:
        kill(ground.rig.processes("a"))
    return struck


def _strike_one(ground: Ground, each: Try, victim: Victim, delays: Delays, mark: int) -> None:
    word = each.said.word
    each.said = ground.say(each.lane, word)
    if victim is Victim.CONNECTION:
        return
    assert each.moment is not None
    _sleep_until(_moment_of(ground, each, delays, mark))
    each.said.struck = time.monotonic()
    kill_soon(lambda: programs_in(ground.house.pid, each.lane.directory), _SOON)
    if ground.taps is not None:
        ground.taps.drop(word.token)


def _moment_of(ground: Ground, each: Try, delays: Delays, mark: int) -> float:
    """When to strike: by what is seen to happen where it can be, and else by when it is expected."""
    assert each.moment is not None
    word, anchor, after = each.said.word, each.moment.anchor, each.moment.ms / 1000
    expected = each.said.posted + _expected(delays, each)
    patience = max(0.0, expected - time.monotonic()) + _LATE
    if anchor in (Anchor.OUT, Anchor.PIPE):
        seen = ground.taps.wait(word.token, patience) if ground.taps is not None and after >= 0 else None
        return expected if seen is None else seen + after
    if ground.rig.model is None:
        return expected
    asked = ground.log.wait(word.token, mark, patience)
    after += word.seconds if anchor is Anchor.ANSWERED else 0.0
    return expected if asked is None else asked + after


def _expected(delays: Delays, each: Try) -> float:
    assert each.moment is not None
    after = each.moment.ms / 1000
    match each.moment.anchor:
        case Anchor.OUT | Anchor.PIPE:
            return max(0.0, delays.expect_out() + after)
        case Anchor.ASKED:
            return delays.expect_asked() + after
        case Anchor.ANSWERED:
            return delays.expect_asked() + each.said.word.seconds + after


def _at_once(work: Sequence[Callable[[], None]]) -> None:
    faults: list[BaseException] = []

    def run(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as fault:  # noqa: BLE001 - it is raised below, where somebody sees it
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if faults:
        raise faults[0]


def _sleep_until(at: float) -> None:
    if (left := at - time.monotonic()) > 0:
        time.sleep(left)


# ---------------------------------------------------------------- afterwards


def _ask_again(ground: Ground, tries: Sequence[Try], mark: int, drawn: random.Random) -> set[str]:
    """Of the words that are held or given up and reached nobody, a person asks for half once more."""
    asked = ground.log.since(mark)
    for each in tries:
        reached = any(one.times(each.said.word.token) for one in asked)
        if reached or drawn.random() < 0.5 or not ground.shown(each.said, settled=True).held:
            continue
        each.retried = True
        # From now on the word is what this wake makes of it.
        each.said.wake = ground.house.post(f"/runs/{ground.run_of(each.lane.ref)['id']}/retry")[-1]
    again = [each.lane for each in tries if each.retried]
    return ground.at_rest(again) if again else set()


def _had_ended(said: Said, log: Sequence[Asked]) -> bool:
    """Whether the agent had the time to end its turn after the model's last word, before anything was killed."""
    if said.struck is None:
        return True
    asked = next((each.at for each in log if each.at and each.times(said.word.token)), said.out)
    return asked is not None and said.struck > asked + said.word.seconds + _ENDS


def _judged(ground: Ground, each: Try, later: Said, combination: Combination, mark: int, rested: set[str]) -> Outcome:
    lane, settled, log = each.lane, each.lane.ref in rested, ground.log.since(mark)
    shown = ground.shown(each.said, settled)
    first = judge(each.said.word, log, shown, lane.history, later.word, ended=_had_ended(each.said, log))
    second = judge(later.word, log, ground.shown(later, settled), lane.history)
    said = each.said
    after = said.struck - said.out if said.struck is not None and said.out is not None else None
    what = str(each)
    outcome = Outcome(combination, what, first, second, after)
    if outcome.good and first.verdict is Verdict.ONCE:
        return outcome
    detail = "" if outcome.good else describe(ground, each.said, later, log, shown)
    # Whatever went on in this chat is no burden of the next try.
    lane.words = LONGEST
    return Outcome(combination, what, first, second, after, detail)
