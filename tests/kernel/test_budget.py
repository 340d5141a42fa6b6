"""The context budget: a hard bound, the latest word for word, nothing silently cut."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.context import Budget, BudgetReason, Selection, select
from clew.kernel.ids import AccountId, AgentId, EntrySeq, ProviderName
from clew.kernel.journal import Author, AuthorKind, JournalEntry, Reader

HUMAN = Author(AuthorKind.HUMAN, "Ada")
BOB = Author(AuthorKind.AGENT, "Bob", AgentId("bob"))
MINE, THEIRS = AccountId("mine"), AccountId("theirs")
LOOM, SPINDLE = ProviderName("loom"), ProviderName("spindle")
OPEN, CLOSED = Reader(LOOM, MINE, across_accounts=True), Reader(LOOM, MINE)


def entry(
    seq: int,
    size: int,
    pair: str | None = None,
    author: Author = HUMAN,
    account: AccountId | None = None,
    provider: ProviderName | None = LOOM,
) -> JournalEntry:
    return JournalEntry(EntrySeq(seq), size, author, pair, provider, account)


TEN = [entry(seq, 10) for seq in range(1, 11)]


@pytest.mark.case("X02")
def test_what_fits_is_told_word_for_word_without_a_brief() -> None:
    assert select(TEN, Budget(total=100, brief=50), OPEN) == Selection(
        tuple(EntrySeq(seq) for seq in range(1, 11)), (), (), 100, 100, BudgetReason.ALL
    )
    selection = select(TEN, Budget(total=101, brief=50), OPEN)
    assert (selection.words, selection.fits) == ("All entries are given in full: 100 of 101 tokens.", True)


@pytest.mark.case("X02")
def test_the_oldest_are_compacted_first_and_the_latest_kept() -> None:
    selection = select(TEN, Budget(total=99, brief=29), OPEN)
    assert selection.verbatim == (4, 5, 6, 7, 8, 9, 10)
    assert selection.compacted == (1, 2, 3)
    assert (selection.size, selection.fits, selection.withheld) == (99, True, ())
    assert selection.words == "Entries given as a brief: 3. With the rest: 99 of 99 tokens."
    assert select(TEN, Budget(total=99, brief=30), OPEN).verbatim == (5, 6, 7, 8, 9, 10)


@pytest.mark.case("X02")
def test_nothing_older_is_kept_once_one_did_not_fit() -> None:
    entries = [entry(1, 1), entry(2, 50), entry(3, 10)]
    selection = select(entries, Budget(total=30, brief=5), OPEN)
    assert (selection.verbatim, selection.compacted, selection.size) == ((3,), (1, 2), 15)


@pytest.mark.case("X02")
def test_a_tools_call_and_result_stay_together_at_the_place_of_the_result() -> None:
    entries = [entry(1, 10), entry(2, 10, "call"), entry(3, 10), entry(4, 10, "call")]
    kept = select(entries, Budget(total=35, brief=5), OPEN)
    assert (kept.verbatim, kept.compacted, kept.size) == ((2, 3, 4), (1,), 35)
    only_pair = select(entries, Budget(total=34, brief=5), OPEN)
    assert (only_pair.verbatim, only_pair.compacted, only_pair.size) == ((2, 4), (1, 3), 25)
    neither = select(entries, Budget(total=24, brief=5), OPEN)
    assert (neither.verbatim, neither.compacted, neither.size) == ((), (1, 2, 3, 4), 5)


@pytest.mark.case("X02")
def test_an_entry_above_the_cap_goes_into_the_brief_and_newer_and_older_ones_stay() -> None:
    entries = [entry(1, 10), entry(2, 21), entry(3, 20), entry(4, 5, "p"), entry(5, 30, "p")]
    selection = select(entries, Budget(total=100, brief=10, entry_cap=20), OPEN)
    assert (selection.verbatim, selection.compacted, selection.size) == ((1, 3), (2, 4, 5), 40)
    assert selection.reason is BudgetReason.COMPACTED
    acted_on = select(entries, Budget(total=100, brief=10, entry_cap=20), OPEN, [EntrySeq(2)])
    assert acted_on.verbatim == (1, 2, 3)


@pytest.mark.case("X07")
def test_the_entry_to_act_on_is_always_word_for_word() -> None:
    selection = select(TEN, Budget(total=40, brief=10), OPEN, [EntrySeq(1)])
    assert (selection.verbatim, selection.compacted, selection.size) == ((1, 9, 10), tuple(range(2, 9)), 40)


@pytest.mark.case("X07")
def test_the_partner_of_an_entry_to_act_on_comes_along() -> None:
    entries = [entry(1, 10, "p"), entry(2, 10), entry(3, 10, "p")]
    selection = select(entries, Budget(total=29, brief=5), OPEN, [EntrySeq(1)])
    assert (selection.verbatim, selection.compacted) == ((1, 3), (2,))


@pytest.mark.case("X07")
def test_an_entry_to_act_on_that_was_not_handed_in_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^entries to act on are not in the journal handed in: \[11, 12\]$"):
        select(TEN, Budget(100, 10), OPEN, [EntrySeq(12), EntrySeq(1), EntrySeq(11)])


@pytest.mark.case("X04")
def test_what_must_be_told_and_does_not_fit_is_said_with_the_remedy() -> None:
    alone = select([entry(1, 101)], Budget(total=100, brief=10), OPEN, [EntrySeq(1)])
    assert alone == Selection((EntrySeq(1),), (), (), 101, 100, BudgetReason.OVER)
    assert not alone.fits
    assert alone.words == (
        "The entries that must be given need 101 tokens; the budget is 100. Raise it, or shorten them."
    )
    exact = select([entry(1, 100)], Budget(total=100, brief=10), OPEN, [EntrySeq(1)])
    assert (exact.fits, exact.size) == (True, 100)


@pytest.mark.case("X04")
def test_the_brief_must_fit_beside_what_must_be_told() -> None:
    entries = [entry(1, 50), entry(2, 90)]
    fits = select(entries, Budget(total=100, brief=10), OPEN, [EntrySeq(2)])
    assert (fits.fits, fits.size, fits.compacted) == (True, 100, (1,))
    over = select(entries, Budget(total=100, brief=11), OPEN, [EntrySeq(2)])
    assert (over.fits, over.size, over.verbatim, over.compacted) == (False, 101, (2,), (1,))


@pytest.mark.case("C23")
def test_the_words_of_another_accounts_agent_are_withheld_and_counted() -> None:
    entries = [
        entry(1, 10, account=THEIRS),
        entry(2, 10, author=BOB, account=THEIRS),
        entry(3, 10, author=BOB, account=MINE),
        entry(4, 10, author=BOB, account=None),
        entry(5, 10, "p", BOB, MINE),
        entry(6, 10, "p", BOB, THEIRS),
        entry(7, 10, author=Author(AuthorKind.CLEW, "clew"), account=THEIRS),
        entry(8, 10, author=Author(AuthorKind.OUTSIDE, "GitHub")),
        entry(9, 10, author=BOB, account=THEIRS, provider=SPINDLE),
        entry(10, 10, author=BOB, account=THEIRS, provider=None),
    ]
    closed = select(entries, Budget(total=50, brief=10), CLOSED)
    assert (closed.verbatim, closed.compacted, closed.withheld) == ((1, 3, 7, 8, 9), (), (2, 4, 5, 6, 10))
    assert closed.size == 50
    assert closed.words == (
        "All entries are given in full: 50 of 50 tokens. Entries withheld because another account's agent"
        " wrote them: 5. The agent's owner may allow them."
    )
    assert select(entries, Budget(total=100, brief=10), OPEN).withheld == ()


@pytest.mark.case("C23", "X07")
def test_what_was_said_to_this_agent_is_told_whoever_said_it() -> None:
    entries = [entry(1, 10, author=BOB, account=THEIRS), entry(2, 10, author=BOB, account=THEIRS)]
    selection = select(entries, Budget(100, 10), CLOSED, [EntrySeq(2)])
    assert (selection.verbatim, selection.withheld) == ((2,), (1,))


def test_two_entries_cannot_have_one_place() -> None:
    with pytest.raises(ValueError, match=r"^two entries claim the same place in the journal$"):
        select([entry(1, 1), entry(1, 2)], Budget(100, 10), OPEN)


def test_an_empty_journal_is_told_whole() -> None:
    assert select([], Budget(0, 0), OPEN) == Selection((), (), (), 0, 0, BudgetReason.ALL)


def test_the_codes_are_these() -> None:
    assert [reason.code for reason in BudgetReason] == [
        "context:all",
        "context:compacted",
        "context:over-budget",
        "context:withheld",
    ]


ENTRIES = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from([HUMAN, BOB]),
        st.sampled_from([None, None, "p", "q", "r"]),
        st.sampled_from([None, MINE, THEIRS]),
        st.booleans(),
    ),
    max_size=25,
)
BUDGETS = st.builds(Budget, st.integers(0, 400), st.integers(0, 80), st.none() | st.integers(0, 60))


@pytest.mark.case("X02", "X04", "X07")
@given(ENTRIES, BUDGETS, st.sampled_from([OPEN, CLOSED]), st.randoms())
def test_the_bound_is_hard_and_every_entry_is_in_exactly_one_place(
    parts: list[tuple[int, Author, str | None, AccountId | None, bool]],
    budget: Budget,
    reader: Reader,
    dice: random.Random,
) -> None:
    entries = [entry(seq, size, pair, who, acc) for seq, (size, who, pair, acc, _) in enumerate(parts, 1)]
    act_on = [EntrySeq(seq) for seq, part in enumerate(parts, 1) if part[4]]
    chosen = select(entries, budget, reader, act_on)

    assert sorted(chosen.verbatim + chosen.compacted + chosen.withheld) == [each.seq for each in entries]
    assert set(act_on) <= set(chosen.verbatim)
    sizes = {each.seq: each.size for each in entries}
    brief = budget.brief if chosen.compacted else 0
    assert chosen.size == sum(sizes[seq] for seq in chosen.verbatim) + brief
    assert chosen.fits is (chosen.size <= budget.total)
    for pair in ("p", "q", "r"):
        members = {each.seq for each in entries if each.pair == pair}
        places = (chosen.verbatim, chosen.compacted, chosen.withheld)
        assert sum(bool(members & set(place)) for place in places) <= 1
    shuffled = list(entries)
    dice.shuffle(shuffled)
    assert select(shuffled, budget, reader, act_on) == chosen


@pytest.mark.case("X02")
@given(st.lists(st.integers(1, 60), max_size=40), st.integers(0, 400), st.integers(0, 80))
def test_what_is_kept_is_as_much_of_the_end_as_fits(sizes: list[int], total: int, brief: int) -> None:
    entries = [entry(seq, size) for seq, size in enumerate(sizes, 1)]
    chosen = select(entries, Budget(total, brief), OPEN)
    assert chosen.compacted + chosen.verbatim == tuple(range(1, len(sizes) + 1))
    if chosen.fits and chosen.compacted:
        assert sum(sizes) > total
        assert chosen.size + sizes[chosen.compacted[-1] - 1] > total


@pytest.mark.case("H05")
@pytest.mark.parametrize("seed", range(2))
def test_shared_heartbeats_stay_under_their_budget_over_a_thousand_ticks(seed: int) -> None:
    dice = random.Random(seed)
    budget = Budget(total=4_000, brief=500, entry_cap=1_000)
    journal: list[JournalEntry] = []
    for number in range(1, 1_001):
        journal.append(entry(number, dice.randint(1, 1_500), author=BOB, account=MINE))
        chosen = select(journal, budget, CLOSED)
        assert chosen.fits
        assert chosen.size <= budget.total
        assert len(chosen.verbatim) + len(chosen.compacted) == number
    assert chosen.size > 2_000


@pytest.mark.case("H05")
@given(st.lists(st.integers(0, 900), min_size=1, max_size=20))
def test_the_tick_that_asks_is_always_told_however_many_went_before(sizes: list[int]) -> None:
    ticks = 1_000
    journal = [entry(seq, sizes[seq % len(sizes)]) for seq in range(1, ticks + 1)]
    chosen = select(journal, Budget(total=1_500, brief=500), OPEN, [EntrySeq(ticks)])
    assert chosen.fits
    assert chosen.size <= 1_500
    assert ticks in chosen.verbatim
