"""A tree whose host died goes on elsewhere: what its children had done is not done again (CONT)."""

from collections.abc import Sequence
from itertools import pairwise

from app.main import Host
from domain import events as e
from domain.commands import ResolveTool
from domain.ids import DEFAULT_TENANT, RunId, run_stream
from tests.hosts import OpenHost, follow, kinds, only, start
from tests.supervision.crashing import CONTINUING, World, close_orphan, die, silent, successor
from tests.supervision.graphs import agent, asks

CHARGE = ("charge", e.ToolEffect.DESTRUCTIVE, False)
NOTIFY = ("notify", e.ToolEffect.EXTERNAL, True)
TOOLS = (CHARGE, NOTIFY)
WORK = ("charge", "notify")
"""What the worker does before it answers."""
MIDDLE = ("lead", "worker")
DEEP = ("lead", "middle", "worker")


def settings(
    line: Sequence[str], *, worker: int | None = None, lead: int | None = None, steps: Sequence[str] = WORK
) -> str:
    """Agents of which each asks the next, and the last one calls tools.

    `worker`, `lead`: on this host its model falls silent after so many steps, once.
    """
    said = {one: [asks(other, "work"), "text = 'All done.'"] for one, other in pairwise(line)}
    said["worker"] = [*(f"tool_call = {{ name = '{step}' }}" for step in steps), "text = 'Worked.'"]
    silences = {"worker": worker, "lead": lead}
    models = "".join(
        _tables(
            name,
            "script",
            [*replies[:after], "silent = true"] if (after := silences.get(name)) is not None else [],
        )
        + _tables(name, "default", replies)
        for name, replies in said.items()
    )
    agents = "".join(agent(one, agents=(other,)) for one, other in pairwise(line))
    agents += agent("worker", tools=tuple(dict.fromkeys(steps)))
    return f'{CONTINUING.format(attempts=2)}\n[providers.script]\ntype = "scripted"\n{models}\n{agents}'


def _tables(model: str, kind: str, behaviours: Sequence[str]) -> str:
    return "".join(f"[[providers.script.models.{model}.{kind}]]\n{behaviour}\n" for behaviour in behaviours)


async def started_below(host: Host, run_id: RunId) -> RunId:
    return only(await follow(host, run_id, e.ChildRunStarted), e.ChildRunStarted)[0].run_id


async def bottom_of(host: Host, run_id: RunId, levels: int) -> RunId:
    for _ in range(levels):
        run_id = await started_below(host, run_id)
    return run_id


async def events_of(host: Host, run_id: RunId) -> list[e.Recorded[e.Event]]:
    return await host.services.log.read_stream(run_stream(run_id))


async def test_an_answer_that_a_child_had_given_is_not_asked_for_again(host_of: OpenHost) -> None:
    """CONT-2: a finished child is a recorded result like any other."""
    world = World()
    host = await host_of(settings(MIDDLE, lead=1), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(MIDDLE), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "lead", session_id="s")
    await silent(host, run_id, 1)
    await die(host)
    await close_orphan(other, run_id)
    seen = await follow(other, await successor(other, run_id))
    assert kinds(seen)[-1] == "RunCompleted"
    assert [one.output for one in only(seen, e.ToolAnswered)] == ["Worked."]
    assert "ChildRunStarted" not in kinds(seen)
    assert world.ran() == {"charge": 1, "notify": 1}


async def test_a_child_that_was_interrupted_goes_on_with_what_it_had_not_done(host_of: OpenHost) -> None:
    """CONT-2, CONT-5: asked again, in a run that goes on from the old one, at whatever depth."""
    world = World()
    host = await host_of(settings(DEEP, worker=1), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(DEEP), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "lead", session_id="s")
    worker = await bottom_of(host, run_id, 2)
    await silent(host, worker, 1)
    await die(host)
    await close_orphan(other, run_id)
    new = await successor(other, run_id)
    assert kinds(await follow(other, new))[-1] == "RunCompleted"
    again = await bottom_of(other, new, 2)
    created = only(await events_of(other, again), e.RunCreated)[0]
    assert (created.continued_from_run_id, created.chain_root_run_id) == (worker, worker)
    assert created.root_run_id == new
    assert [one.output for one in only(await events_of(other, again), e.ToolAnswered)] == ["charge is done"]
    assert world.ran() == {"charge": 1, "notify": 1}
    old = await events_of(other, worker)
    assert [one.error_type for one in only(old, e.RunFailed)] == ["orphaned"], (
        "it is closed before it is judged"
    )
    assert [one.by for one in only(old, e.RunContinued)] == [again]


async def test_a_call_that_is_safe_to_repeat_has_its_key_again_below_the_new_root(host_of: OpenHost) -> None:
    """TOOL-1, CONT-3: the outside knows the repetition for one."""
    world = World()
    world.held = ("first", "notify")
    host = await host_of(settings(MIDDLE), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(MIDDLE), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "lead", session_id="s")
    await world.reached.wait()
    await die(host)
    await close_orphan(other, run_id)
    assert kinds(await follow(other, await successor(other, run_id)))[-1] == "RunCompleted"
    assert world.ran() == {"charge": 1, "notify": 2}
    assert len(world.keys("notify")) == 1


async def test_what_a_child_left_uncertain_blocks_its_root_until_somebody_says_what_came_of_it(
    host_of: OpenHost,
) -> None:
    """CONT-3: the remedy names the child's call, and the root goes on from it."""
    world = World()
    world.held = ("first", "charge")
    host = await host_of(settings(DEEP), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(DEEP), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "lead", session_id="s")
    await world.reached.wait()
    worker = await bottom_of(host, run_id, 2)
    await die(host)
    await close_orphan(other, run_id)
    [blocked] = only(await events_of(other, run_id), e.RunContinuationBlocked)
    [call] = only(await events_of(other, worker), e.ToolInvoking)
    assert blocked.cause is e.ContinuationBlock.OUTCOME_UNKNOWN
    assert blocked.remedy.endswith(f"POST /api/runs/{worker}/tools/{call.call_id}/resolve")
    found = ResolveTool(call_id=call.call_id, output="charged at noon")
    await other.services.resolutions.resolve(DEFAULT_TENANT, worker, found)
    new = await successor(other, run_id)
    assert kinds(await follow(other, new))[-1] == "RunCompleted"
    again = await bottom_of(other, new, 2)
    assert [one.output for one in only(await events_of(other, again), e.ToolAnswered)] == ["charged at noon"]
    assert world.ran() == {"charge": 1, "notify": 1}


async def test_a_tree_that_dies_twice_repeats_nothing(host_of: OpenHost) -> None:
    """CONT-1: each attempt goes on from the one before it, below the root as well."""
    world = World()
    steps = ("charge", "notify", "charge")
    hosts = [
        await host_of(settings(MIDDLE, worker=after, steps=steps), tools=world.tools(name, *TOOLS))
        for name, after in (("first", 1), ("second", 2), ("third", None))
    ]
    run_id = await start(hosts[0], "lead", session_id="s")
    for host, after in zip(hosts[:2], (1, 2), strict=True):
        await silent(host, await bottom_of(host, run_id, 1), after)
        await die(host)
        other = hosts[hosts.index(host) + 1]
        await close_orphan(other, run_id)
        run_id = await successor(other, run_id)
    assert kinds(await follow(hosts[2], run_id))[-1] == "RunCompleted"
    assert world.ran() == {"charge": 2, "notify": 1}
    assert len({call.key for call in world.calls}) == 3


async def test_a_root_that_lives_is_left_alone(host_of: OpenHost) -> None:
    """What is looked into below a root is closed only if the root itself was orphaned."""
    world = World()
    world.held = ("first", "charge")
    host = await host_of(settings(MIDDLE), tools=world.tools("first", *TOOLS))
    run_id = await start(host, "lead", session_id="s")
    await world.reached.wait()
    worker = await bottom_of(host, run_id, 1)
    await host.continuer.consider(run_id)
    assert kinds(await events_of(host, worker))[-1] == "ToolInvoking"
    await host.services.runs.cancel(DEFAULT_TENANT, run_id)
    assert kinds(await follow(host, run_id))[-1] == "RunCancelled"
