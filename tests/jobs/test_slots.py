"""How many jobs a host takes of which lane."""

from typing import Any

from app.jobs.slots import Slots
from app.settings import AsyncRunSettings, LaneSettings


def slots(max_concurrent: int, **lanes: int | None) -> Slots:
    named: dict[str, Any] = {name: LaneSettings(max_concurrent=limit) for name, limit in lanes.items()}
    return Slots(AsyncRunSettings(max_concurrent=max_concurrent, lanes=named))


def test_lanes_come_in_the_order_of_the_settings_and_the_default_one_last() -> None:
    """JOB-1"""
    assert list(slots(4, urgent=None, bulk=None).by_lane()) == ["urgent", "bulk", "default"]
    assert list(slots(4, default=None, bulk=None).by_lane()) == ["default", "bulk"]


def test_a_lane_has_its_own_limit_within_the_hosts() -> None:
    """JOB-1"""
    some = slots(4, bulk=2)
    assert some.by_lane() == {"bulk": 2, "default": 4}
    some.take("bulk")
    assert some.by_lane() == {"bulk": 1, "default": 3}
    some.take("bulk")
    assert some.by_lane() == {"default": 2}
    some.take("default")
    some.take("default")
    assert (some.by_lane(), some.free) == ({}, 0)
    some.give_back("bulk")
    assert some.by_lane() == {"bulk": 1, "default": 1}


def test_a_lane_without_slots_is_left_to_other_hosts() -> None:
    assert slots(4, bulk=0).by_lane() == {"default": 4}
