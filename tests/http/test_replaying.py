"""Running again what a run was given, and comparing what came of it."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from app.keys.key import Scope
from domain import events as e
from domain.ids import DEFAULT_TENANT, RunId, session_stream
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.http.client import Client
from tests.http.interrupted import STEPS, TOOLS, ClientOf, interrupted
from tests.http.interrupted import client_of as client_of
from tests.http.test_auth import key
from tests.supervision.crashing import World, settings

ECHO = scripted(
    '[providers.script.models.echo]\n[providers.script.models.other.default]\ntext = "something else"\n',
    '[agents.echo]\nprovider = "script"\nmodel = "echo"\ninstructions = "Be {{ tone }}."\n'
    'parameters = { tone = "brief" }\n',
)


async def replayed(client: Client, run_id: RunId, body: object = None, **headers: str) -> RunId:
    """The new run, once it is there."""
    answer = await client.post(f"/tracon/api/runs/{run_id}/replay", body, **headers)
    assert answer.status == 201, answer.body
    assert answer.headers["Location"] == f"/tracon/api/runs/{answer.body['id']}"
    assert answer.body["replay_of_run_id"] == str(run_id)
    return RunId(UUID(answer.body["id"]))


async def finished(host_of: OpenHost, client_of: ClientOf) -> tuple[Client, RunId, World]:
    """A run that looked and refunded, and answered."""
    world = World()
    host = await host_of(settings(STEPS), tools=world.tools("first", *TOOLS))
    run_id = await start(host, "a", session_id="s")
    await follow(host, run_id)
    return await client_of(host), run_id, world


async def test_with_recorded_results_nothing_happens_again(host_of: OpenHost, client_of: ClientOf) -> None:
    """Each call is answered from the run that is replayed, and says so."""
    client, run_id, world = await finished(host_of, client_of)
    seen = await follow(client.host, await replayed(client, run_id))
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="All done.")]
    assert [one.output for one in only(seen, e.ToolAnswered)] == ["look is done", "refund is done"]
    assert {one.recorded_run_id for one in only(seen, e.ToolAnswered)} == {run_id}
    assert world.ran() == {"look": 1, "refund": 1}


async def test_without_tools_every_call_is_refused_and_the_model_reads_why(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    client, run_id, world = await finished(host_of, client_of)
    seen = await follow(client.host, await replayed(client, run_id, {"tools": "none"}))
    assert [one.failure for one in only(seen, e.ToolFailed)] == [e.ToolFailure.NOT_RUN] * 2
    assert "ToolInvoking" not in kinds(seen)
    assert kinds(seen)[-1] == "RunCompleted"
    assert world.ran() == {"look": 1, "refund": 1}


async def test_live_tools_run_again_as_calls_of_their_own(host_of: OpenHost, client_of: ClientOf) -> None:
    """TOOL-1: it is no continuation, so the outside is not told that these are the same calls."""
    client, run_id, world = await finished(host_of, client_of)
    seen = await follow(client.host, await replayed(client, run_id, {"tools": "live"}))
    assert kinds(seen)[-1] == "RunCompleted"
    assert world.ran() == {"look": 2, "refund": 2}
    assert len(world.keys("refund")) == 2


async def test_live_tools_need_an_admin(host_of: OpenHost, client_of: ClientOf) -> None:
    """HTTP-4: whoever may run agents may not have what they did done once more."""
    client, run_id, world = await finished(host_of, client_of)
    runner = await key(client, Scope.RUN, tenant="default")
    path = f"/tracon/api/runs/{run_id}/replay"
    refused = await client.post(path, {"tools": "live"}, **runner)
    assert (refused.status, refused.body["code"]) == (403, "scope_missing")
    assert (await client.post(path, {"tools": "recorded"}, **runner)).status == 201
    assert world.ran()["refund"] == 1


async def test_a_run_that_a_provider_ended_is_replayed_with_what_its_tools_had_done(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    """C75: the result is used again, the tool not."""
    world = World()
    failing = settings(STEPS).replace('text = "All done."', "status = 400")
    host = await host_of(failing, tools=world.tools("first", *TOOLS))
    run_id = await start(host, "a")
    assert kinds(await follow(host, run_id))[-1] == "RunFailed"
    client = await client_of(await host_of(settings(STEPS), tools=world.tools("second", *TOOLS)))
    seen = await follow(client.host, await replayed(client, run_id))
    assert kinds(seen)[-1] == "RunCompleted"
    assert world.ran() == {"look": 1, "refund": 1}


async def test_a_call_whose_outcome_is_unknown_has_nothing_to_replay(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    client, run_id, world = await interrupted(host_of, client_of)
    seen = await follow(client.host, await replayed(client, run_id))
    assert [one.output for one in only(seen, e.ToolAnswered)] == ["look is done"]
    assert [one.tool for one in only(seen, e.ToolFailed)] == ["refund"]
    assert world.ran()["refund"] == 1


async def test_a_replay_is_shown_the_session_as_it_was_and_adds_nothing_to_it(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    """Words are counted as tokens here: it read what the run had read, and not what was said since."""
    client = await client_of(await host_of(ECHO))
    runs = [await start(client.host, "echo", text, session_id="s") for text in ("one two", "three", "four")]
    seen = [await follow(client.host, run_id) for run_id in runs]
    stream = session_stream(DEFAULT_TENANT, "s")
    told = await client.host.services.log.read_stream(stream)
    again = await replayed(client, runs[1])
    and_again = await replayed(client, again)
    [reply] = only(seen[1], e.ModelReplied)
    for run_id in (again, and_again):
        [same] = only(await follow(client.host, run_id), e.ModelReplied)
        assert (same.message, same.usage) == (reply.message, reply.usage)
    assert await client.host.services.log.read_stream(stream) == told
    assert (await client.get(f"/tracon/api/runs/{again}")).body["session_id"] is None


async def test_the_definition_is_todays_or_the_one_on_record(host_of: OpenHost, client_of: ClientOf) -> None:
    run_id = await start(await host_of(ECHO), "echo")
    client = await client_of(await host_of(ECHO.replace("Be {{ tone }}.", "Be {{ tone }} and kind.")))
    await follow(client.host, run_id)
    instructions = [
        only(await follow(client.host, await replayed(client, run_id, body)), e.RunStarted)[0].definition
        for body in (None, {"definition": "current"}, {"definition": "recorded"})
    ]
    assert [one and one.instructions for one in instructions] == ["Be brief and kind."] * 2 + ["Be brief."]


async def test_a_replay_can_be_asked_to_be_different(host_of: OpenHost, client_of: ClientOf) -> None:
    client = await client_of(await host_of(ECHO))
    run_id = await start(client.host, "echo", parameters={"tone": "dry"})
    await follow(client.host, run_id)
    body = {
        "parameters": {"tone": "warm"},
        "provider": "script",
        "model": "other",
        "options": {"temperature": 0.5},
        "instructions": "Answer in Latin.",
    }
    [started] = only(await follow(client.host, await replayed(client, run_id, body)), e.RunStarted)
    definition = started.definition
    assert definition is not None
    assert definition.instructions == "Be warm.\n\nAnswer in Latin."
    assert (definition.model, definition.options.temperature) == ("other", 0.5)
    [plain] = only(await follow(client.host, await replayed(client, run_id)), e.RunStarted)
    assert plain.definition is not None
    assert plain.definition.instructions == "Be dry."


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"tools": "some"}, 400, "bad_body"),
        ({"definition": "older"}, 400, "bad_body"),
        ({"provider": "script"}, 400, "bad_body"),
        ({"model": "echo"}, 400, "bad_body"),
        ({"options": {"temperature": 7}}, 400, "bad_body"),
        ({"tool": "none"}, 400, "bad_body"),
        ({"provider": "nobody", "model": "echo"}, 400, "unusable_agent"),
        ({"provider": "script", "model": "nothing"}, 400, "unusable_agent"),
        ({"parameters": {"colour": "red"}}, 400, "bad_parameter"),
        ({"definition": "recorded", "parameters": {"tone": "dry"}}, 400, "not_replayable"),
    ],
)
async def test_a_replay_that_cannot_be_had_is_refused(
    host_of: OpenHost, client_of: ClientOf, body: dict[str, Any], status: int, code: str
) -> None:
    client = await client_of(await host_of(ECHO))
    run_id = await start(client.host, "echo")
    await follow(client.host, run_id)
    answer = await client.post(f"/tracon/api/runs/{run_id}/replay", body)
    assert (answer.status, answer.body["code"]) == (status, code)


async def test_another_tenants_run_can_neither_be_replayed_nor_compared(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    """HTTP-2"""
    client = await client_of(await host_of(ECHO))
    run_id = await start(client.host, "echo")
    await follow(client.host, run_id)
    stranger = await key(client)
    theirs = (await client.post("/tracon/api/agents/echo/run", {"message": "hi"}, **stranger)).body["id"]
    for path in (f"{run_id}/replay", f"{uuid4()}/replay", "7/replay"):
        assert (await client.post(f"/tracon/api/runs/{path}", **stranger)).status == 404
    for path in (f"{run_id}/compare/{theirs}", f"{theirs}/compare/{run_id}", f"{theirs}/compare/7"):
        assert (await client.get(f"/tracon/api/runs/{path}", **stranger)).status == 404


async def test_two_runs_are_shown_side_by_side(host_of: OpenHost, client_of: ClientOf) -> None:
    client, run_id, _ = await finished(host_of, client_of)
    new = await replayed(client, run_id, {"tools": "none"})
    await follow(client.host, new)
    answer = await client.get(f"/tracon/api/runs/{run_id}/compare/{new}")
    assert answer.status == 200, answer.body
    found = answer.body
    assert (found["a"]["run"]["id"], found["b"]["run"]["id"]) == (str(run_id), str(new))
    assert (found["same_outcome"], found["same_answer"], found["answer_diff"]) == (True, True, [])
    assert [(pair["tool"], pair["same"]) for pair in found["tool_calls"]] == [
        ("look", False),
        ("refund", False),
    ]
    assert [pair["b"]["state"] for pair in found["tool_calls"]] == ["failed", "failed"]
    assert (found["a"]["steps"], found["b"]["steps"]) == (3, 3)
    assert found["usage_difference"]["input_tokens"] > 0


async def test_long_answers_are_cut_where_they_are_shown(host_of: OpenHost, client_of: ClientOf) -> None:
    """EVENT-7"""
    client = await client_of(await host_of(f"[recording]\ndisplay_limit = 100\n{ECHO}"))
    run_id = await start(client.host, "echo", "x" * 200)
    await follow(client.host, run_id)
    found = (await client.get(f"/tracon/api/runs/{run_id}/compare/{run_id}")).body
    assert found["a"]["answer"].endswith("[cut for display: 100 of 200 bytes]")
    assert found["same_answer"]
