"""What becomes of a key when something goes wrong on the way to its answer (IDEM-3, IDEM-5)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn

import msgspec
import pytest

from app.db.errors import StoreUnavailable
from app.idempotency.answer import Answer, Form
from app.idempotency.keys import Keys
from app.idempotency.service import Idempotency, Outcome, Use
from app.idempotency.settling import Settling
from app.main import Host
from app.metrics import Metrics
from app.settings import IdempotencySettings
from app.store.change import Change
from app.store.event_log import VersionConflict
from app.supervision.run_service import StartRequest
from app.supervision.runs import Runs
from domain.errors import Unavailable
from domain.events import Recorded, RunEvent, SessionOpened
from domain.idempotency import Key, KeyedRequest, Release
from domain.ids import DEFAULT_TENANT, RunId, Version, session_stream
from domain.messages import UserMessage
from tests.hosts import OpenHost, scripted

ECHO = scripted("[providers.script.models.echo]", '[agents.echo]\nprovider = "script"\nmodel = "echo"')
REQUEST = KeyedRequest.of("k", "POST", "/run", b"{}")
Begin = Callable[[StartRequest], Awaitable[RunId]]


def count_of_events(recorded: Sequence[Recorded[RunEvent]]) -> Answer:
    return Answer(status=200, content_type="text/plain", body=b"%d" % len(recorded))


COUNT = Form(name="count", render=count_of_events)
LOCATED = Form(
    name="located",
    render=lambda recorded: Answer(
        status=202,
        content_type="text/plain",
        body=b"%d" % len(recorded),
        headers={"Location": f"/runs/{recorded[0].stream_id}", "Preference-Applied": "respond-async"},
    ),
    at_once=True,
)


class Desk:
    """A service of idempotency over a host's real parts, whose forms and ways to begin are the test's."""

    def __init__(self, host: Host, *forms: Form) -> None:
        self.host = host
        self.keys = Keys(host.services.log, patience_s=1.0)
        self.settling = Settling(
            self.keys,
            Runs(host.services.log),
            {form.name: form for form in forms},
            continues=False,
            consider=host.continuer.consider,
        )
        self.service = Idempotency(
            IdempotencySettings(),
            host.services.log,
            self.keys,
            self.settling,
            is_live=lambda run_id: host.roster.find(run_id) is not None,
            now=self._never,
            metrics=Metrics(),
        )

    async def answered(self, form: Form, begin: Begin | None = None, **more: object) -> Outcome:
        async def submission() -> StartRequest:
            asked = StartRequest(tenant=DEFAULT_TENANT, agent="echo", messages=(UserMessage(content="hi"),))
            return msgspec.structs.replace(asked, **more)

        use = Use(tenant=DEFAULT_TENANT, request=REQUEST, form=form)
        return await self.service.answered(use, submission, begin or self.host.services.runs.start)

    async def key(self) -> Key:
        return await self.keys.load(DEFAULT_TENANT, "k")

    async def _never(self) -> NoReturn:
        raise AssertionError("without retention nobody asks what time it is")


async def test_a_crash_on_the_way_to_the_answer_frees_the_key(host_of: OpenHost) -> None:
    """IDEM-3: an exception."""

    def crash(_: object) -> Answer:
        raise LookupError("a defect")

    desk = Desk(await host_of(ECHO), COUNT, broken := Form(name="broken", render=crash))
    with pytest.raises(LookupError):
        await desk.answered(broken)
    assert not (await desk.key()).in_progress
    assert (await desk.answered(COUNT)).replayed is False


@pytest.mark.parametrize("error", [LookupError("a defect"), Unavailable("not now")])
async def test_where_nothing_could_be_begun_the_key_stays_free(host_of: OpenHost, error: Exception) -> None:
    """IDEM-3"""

    async def refuse(_: StartRequest) -> RunId:
        raise error

    desk = Desk(await host_of(ECHO), COUNT)
    with pytest.raises(type(error)):
        await desk.answered(COUNT, refuse)
    assert await desk.key() == Key()


async def test_a_crash_after_the_run_was_opened_frees_the_key_too(host_of: OpenHost) -> None:
    """IDEM-3: an exception."""
    desk = Desk(host := await host_of(ECHO), COUNT)

    async def crash(submission: StartRequest) -> RunId:
        await host.services.runs.start(submission)
        raise LookupError("a defect")

    with pytest.raises(LookupError):
        await desk.answered(COUNT, crash)
    assert not (await desk.key()).in_progress


async def test_a_conflict_that_is_not_of_the_key_is_its_starters_to_answer(host_of: OpenHost) -> None:
    """IDEM-4: only a lost race for the key is run again."""
    desk = Desk(host := await host_of(ECHO), COUNT)
    moved = Change(
        stream_id=session_stream(DEFAULT_TENANT, "s"),
        expected=Version(0),
        tenant=DEFAULT_TENANT,
        events=(SessionOpened(session_id="s", messages=(UserMessage(content="before"),)),),
    )
    await host.services.log.append(moved)
    with pytest.raises(VersionConflict):
        await desk.answered(COUNT, alongside=(moved,))
    assert await desk.key() == Key()


async def test_who_loses_the_race_for_the_key_gets_the_winners_answer(host_of: OpenHost) -> None:
    """IDEM-4: the other host reserves it between our look and our append."""
    desk, other = Desk(host := await host_of(ECHO), COUNT), Desk(await host_of(ECHO), COUNT)
    won: list[Outcome] = []

    async def late(submission: StartRequest) -> RunId:
        won.append(await other.answered(COUNT))
        return await host.services.runs.start(submission)

    lost = await desk.answered(COUNT, late)
    assert (lost.replayed, won[0].replayed) == (True, False)
    assert (lost.answer, lost.run_id) == (won[0].answer, won[0].run_id)


async def test_an_answer_that_is_due_at_once_is_kept_with_where_to_look(host_of: OpenHost) -> None:
    """IDEM-3: Location and Preference-Applied."""
    desk = Desk(await host_of(ECHO), LOCATED)
    first, again = await desk.answered(LOCATED), await desk.answered(LOCATED)
    assert (first.replayed, again.replayed) == (False, True)
    assert again.answer == first.answer
    assert again.answer.headers == {
        "Location": f"/runs/{first.run_id}",
        "Preference-Applied": "respond-async",
    }


async def test_a_kind_of_answer_that_only_a_newer_build_knows_is_left_to_it(host_of: OpenHost) -> None:
    """IDEM-5"""
    desk = Desk(host := await host_of(ECHO), COUNT)
    newer = Form(name="newer", render=count_of_events)
    with pytest.raises(Exception, match="still in progress"):
        await desk.answered(newer)
    assert (await desk.key()).in_progress
    assert (await Desk(host, newer).answered(newer)).replayed


async def test_an_operators_word_stands_and_the_answer_is_told_all_the_same(host_of: OpenHost) -> None:
    """IDEM-5: released from another host while the run was going on."""
    desk = Desk(host := await host_of(ECHO), COUNT)

    async def released_meanwhile(submission: StartRequest) -> RunId:
        run_id = await host.services.runs.start(submission)
        release = Release(reserved_by=run_id, run_id=run_id, reason="operator")
        await desk.keys.execute(await desk.key(), DEFAULT_TENANT, "k", release)
        return run_id

    outcome = await desk.answered(COUNT, released_meanwhile)
    assert (outcome.answer.status, outcome.replayed) == (200, False)
    assert not (await desk.key()).in_progress
    assert (await desk.answered(COUNT)).run_id != outcome.run_id


async def test_a_host_that_closes_leaves_its_keys_for_others_to_settle(host_of: OpenHost) -> None:
    """IDEM-5"""
    desk = Desk(host := await host_of(ECHO), COUNT)
    begun = asyncio.Event()

    async def told(submission: StartRequest) -> RunId:
        run_id = await host.services.runs.start(submission)
        begun.set()
        await asyncio.Event().wait()
        return run_id

    waiting = asyncio.create_task(desk.answered(COUNT, told))
    await begun.wait()
    await desk.service.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await desk.key()).in_progress
    settled = await Desk(await host_of(ECHO), COUNT).settling.settle(DEFAULT_TENANT, "k")
    assert settled.key.completed is not None


async def test_an_outage_before_the_answer_is_kept_leaves_it_to_be_found(
    host_of: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IDEM-4: what was not kept is not told."""
    desk = Desk(await host_of(ECHO), COUNT)

    async def away(*_: object) -> Key:
        raise StoreUnavailable("away")

    with monkeypatch.context() as outage:
        outage.setattr(desk.keys, "execute", away)
        with pytest.raises(StoreUnavailable):
            await desk.answered(COUNT)
    assert (await desk.answered(COUNT)).replayed
