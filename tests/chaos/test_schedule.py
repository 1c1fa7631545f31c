"""What a seed decides: the faults of a trial and the submissions of its clients."""

import pytest

from ops.chaos.plan import Plan, plan_in, turn_of
from ops.chaos.schedule import Fault, FaultKind, Thresholds, faults
from ops.chaos.workload import Submission, Way, submissions

THRESHOLDS = Thresholds(orphan_s=2.5)
SEEDS = range(20)
DISABLING = (FaultKind.KILL_HOST, FaultKind.STOP_HOST, FaultKind.FREEZE_HOST, FaultKind.PARTITION_HOST)


def schedule_of(seed: int, hosts: int = 3) -> tuple[Fault, ...]:
    return faults(seed, 600, hosts, THRESHOLDS, gap_s=2.5)


def workload_of(seed: int) -> tuple[Submission, ...]:
    return submissions(seed, 600, 3, per_second=2)


def test_one_seed_always_means_the_same_trial() -> None:
    assert schedule_of(7) == schedule_of(7)
    assert workload_of(7) == workload_of(7)


def test_another_seed_means_another_trial() -> None:
    assert schedule_of(7) != schedule_of(8)
    assert workload_of(7) != workload_of(8)


def test_ten_minutes_meet_every_kind_of_fault_and_every_way_to_submit() -> None:
    assert {fault.kind for fault in schedule_of(1)} == set(FaultKind)
    assert {submission.way for submission in workload_of(1)} == set(Way)


@pytest.mark.parametrize("seed", SEEDS)
def test_some_host_is_always_left_alone_with_its_database(seed: int) -> None:
    for hosts in (2, 3):
        schedule = [fault for fault in schedule_of(seed, hosts) if fault.kind in DISABLING]
        for fault in schedule:
            down = {other.host for other in schedule if other.at_s <= fault.at_s <= other.at_s + other.for_s}
            assert len(down) < hosts


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_is_put_right_before_the_time_is_over(seed: int) -> None:
    assert all(fault.at_s >= 0 and fault.at_s + fault.for_s < 600 for fault in schedule_of(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_two_submissions_ask_for_the_same_deed(seed: int) -> None:
    """What a tool's file says can be told apart, but for an equal call that a step makes on purpose."""
    steps = [step for submission in workload_of(seed)[:200] for step in submission.plan.steps]
    orders = [order for step in steps for order in {call.order for call in step}]
    assert len(set(orders)) == len(orders)


def test_a_plan_travels_as_a_message() -> None:
    plan = workload_of(3)[5].plan
    assert plan_in(plan.message) == plan
    assert plan_in("Hello?") is None


def test_the_provider_sees_the_turn_that_is_under_way_in_every_wire() -> None:
    earlier, plan = Plan(number=1), Plan(number=2)
    chat: list[dict[str, object]] = [
        {"role": "system", "content": "Do it."},
        {"role": "user", "content": earlier.message},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": plan.message},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "done"},
    ]
    assert turn_of(chat) == (plan, 1)
    messages = [
        {"role": "user", "content": [{"type": "text", "text": plan.message}]},
        {"role": "assistant", "content": [{"type": "tool_use"}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "done"}]},
    ]
    assert turn_of(messages) == (plan, 1)
