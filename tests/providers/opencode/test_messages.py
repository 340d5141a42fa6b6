"""The ids that prompts get in a session."""

import re
from uuid import UUID

import pytest

from clew.kernel import PromptId
from clew.providers.opencode.messages import message_id, part_id
from tests.providers.opencode.evidence_kit import new_id

REAL = "msg_1ea073992001A5XcuiuG34llu5"
"""Made by OpenCode at 1794927704466 ms, the first in that millisecond."""
SHAPE = re.compile(r"msg_[0-9a-f]{12}[0-9A-Za-z]{14}")


def made(milliseconds: int, rest: int = 0) -> PromptId:
    """A UUID of version 7 with these 74 bits behind its time."""
    value = milliseconds << 80 | 7 << 76 | (rest >> 62) << 64 | 2 << 62 | rest & (1 << 62) - 1
    return PromptId(str(UUID(int=value)))


@pytest.mark.case("P19")
def test_an_id_has_the_shape_of_a_real_one_and_the_place_before_it() -> None:
    now = 1794927704466
    ours = message_id(made(now))
    assert SHAPE.fullmatch(ours)
    assert SHAPE.fullmatch(REAL)
    assert (ours[:13], REAL[13:16]) == (REAL[:13], "001"), "the same time"
    assert ours[13:16] == "000", "by which the plugin knows it"
    assert message_id(made(now - 1, (1 << 74) - 1)) < ours < REAL < message_id(made(now + 1))
    assert part_id(made(now)) == ours.replace("msg_", "prt_")


@pytest.mark.case("P19")
def test_later_prompts_sort_behind_also_within_a_millisecond() -> None:
    ids = [made(now, rest) for now in (10**12, 10**12 + 1) for rest in (0, 1, 61, 62, 1 << 62, (1 << 74) - 1)]
    assert ids == sorted(ids)
    named = [message_id(each) for each in ids]
    assert named == sorted(set(named))


@pytest.mark.case("P19")
def test_an_id_is_the_same_each_time_and_never_another_prompts() -> None:
    ids = [new_id(1.0) for _ in range(2000)]
    assert [message_id(each) for each in ids] == [message_id(PromptId(each.upper())) for each in ids]
    assert len({message_id(each) for each in ids}) == len(set(ids)) == 2000


def test_what_is_no_uuid_is_refused() -> None:
    with pytest.raises(ValueError, match="UUID"):
        message_id(PromptId("nonsense"))
