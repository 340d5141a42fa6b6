"""How the tries are dealt out: all of the matrix is in them, and a few of them are not all of one kind."""

import pytest

from tests.story.boundary.matrix import AGENTS, WITH_SERVER, WITHOUT_TAP, Trouble, Victim, rounds, victims
from tests.story.boundary.moments import MOMENTS, Anchor


def test_there_are_forty_moments_from_before_the_prompt_to_a_second_after_it() -> None:
    assert len(set(MOMENTS)) == len(MOMENTS) == 40
    around = [moment.ms for moment in MOMENTS if moment.anchor is Anchor.OUT]
    assert (min(around), max(around)) == (-100, 1000)


@pytest.mark.parametrize("agent", AGENTS)
def test_enough_tries_cover_every_combination_at_every_moment(agent: str) -> None:
    dealt = [each for each in rounds(agent, 900, "1") if each.combination.victim is not Victim.CONNECTION]
    found = {(each.combination, moment) for each in dealt for moment in each.moments}
    direct = {(each, moment) for each, moment in found if not each.traced}
    assert len(direct) == 12 * 40
    assert {each.victim for each, _ in direct} == set(victims(agent))
    traced = {each for each, moment in found if each.traced and moment.anchor is Anchor.PIPE}
    assert len(traced) == (0 if agent in WITHOUT_TAP else 12)


@pytest.mark.parametrize("agent", sorted(WITH_SERVER))
def test_every_trouble_of_a_connection_comes_to_new_and_resumed_sessions(agent: str) -> None:
    dealt = [each for each in rounds(agent, 900, "1") if each.combination.victim is Victim.CONNECTION]
    resumed = {trouble for each in dealt if each.combination.resumed for trouble in each.troubles}
    fresh = {trouble for each in dealt if not each.combination.resumed for trouble in each.troubles}
    assert resumed == set(Trouble)
    assert fresh == set(Trouble) - {Trouble.LOOK_FAILS, Trouble.LOOK_HTML}


@pytest.mark.parametrize("agent", AGENTS)
def test_the_same_seed_deals_the_same_and_another_does_not(agent: str) -> None:
    assert rounds(agent, 60, "1") == rounds(agent, 60, "1")
    assert rounds(agent, 60, "1") != rounds(agent, 60, "2")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_few_tries_are_of_different_combinations(agent: str) -> None:
    dealt = rounds(agent, 30, "1", brief=True)
    assert len({each.combination for each in dealt}) == len(dealt)
    assert (dealt[0].combination.victim is Victim.CONNECTION) == (agent in WITH_SERVER)
    assert not any(moment.ms > 60 for each in dealt for moment in each.moments)
