"""Bringing a key up to what its runs have come to: completed, released, or still in progress (IDEM-5)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.idempotency.answer import Answer, Form
from app.idempotency.chains import Chain, chain_from
from app.idempotency.keys import Keys
from app.store.event_log import VersionConflict
from app.supervision.runs import Runs
from domain.errors import Unavailable
from domain.events import IdempotencyKeyReserved, Recorded, RunEvent
from domain.idempotency import ChainState, Complete, Key, KeyCommand, Release, state_of
from domain.ids import RunId
from domain.run import RunStatus

_REASON = {RunStatus.FAILED: "run_failed", RunStatus.CANCELLED: "run_cancelled"}


@dataclass(frozen=True, kw_only=True)
class Made:
    """An answer, the run that it is of, and that run's events where it was made from them just now."""

    answer: Answer
    run_id: RunId
    events: Sequence[Recorded[RunEvent]] = ()


@dataclass(frozen=True, kw_only=True)
class Settled:
    """A key as it is now, and the answer that settled it just now, kept or not.

    A key that waits for a person is not settled, and there is something to be told all the same.
    """

    key: Key
    made: Made | None = None


class Settling:
    """Any host may do it, at any time and together with others: the first to append has settled it."""

    def __init__(
        self,
        keys: Keys,
        runs: Runs,
        forms: Mapping[str, Form],
        *,
        continues: bool,
        consider: Callable[[RunId], Awaitable[None]],
    ) -> None:
        """`consider` has an interrupted run continued, if nothing stands against that."""
        self._keys = keys
        self._runs = runs
        self._forms = forms
        self._continues = continues
        self._consider = consider

    async def settle(self, tenant: str, name: str, *, of: RunId | None = None) -> Settled:
        """`of`: only if it is still this run's submission that has the key. Raise StoreUnavailable."""
        while True:
            key = await self._keys.load(tenant, name)
            reserved = key.reserved
            if reserved is None or key.completed is not None or of not in (None, reserved.run_id):
                return Settled(key=key)
            form = self._forms.get(reserved.form)
            if form is None:
                return Settled(key=key)  # a form that only a newer build knows is for a newer build to make
            chain = await self._chain(form, reserved.run_id)
            state = self._state(form, chain)
            if state is ChainState.DUE:
                with suppress(Unavailable):  # whoever comes next tries again
                    await self._consider(chain.runs[-1].id)
            if state in (ChainState.OPEN, ChainState.UNCERTAIN, ChainState.DUE):
                return Settled(key=key)
            made = _made(form, chain)
            if state is ChainState.WAITING:
                return Settled(key=key, made=made)
            command = _command(reserved, chain, made.answer if state is ChainState.ANSWERED else None)
            try:
                key = await self._keys.execute(key, tenant, name, command)
            except VersionConflict:
                continue  # somebody else was first, and their word stands
            return Settled(key=key, made=made)

    async def made(self, form: Form, run_id: RunId) -> Made:
        """What the submission with this run has come to, whoever has its key now."""
        return _made(form, await self._chain(form, run_id))

    async def _chain(self, form: Form, run_id: RunId) -> Chain:
        return await chain_from(self._runs, run_id, goes_past_people=form.goes_past_people)

    def _state(self, form: Form, chain: Chain) -> ChainState:
        if form.at_once:
            return ChainState.ANSWERED
        return state_of(chain.runs, continues=self._continues, goes_past_people=form.goes_past_people)


def _made(form: Form, chain: Chain) -> Made:
    return Made(answer=form.render(chain.last), run_id=chain.runs[-1].id, events=chain.last)


def _command(reserved: IdempotencyKeyReserved, chain: Chain, answer: Answer | None) -> KeyCommand:
    last = chain.runs[-1]
    if answer is None or not answer.is_kept:
        reason = _REASON.get(last.status, "no_success")
        return Release(reserved_by=reserved.run_id, run_id=last.id, reason=reason)
    return Complete(
        reserved_by=reserved.run_id,
        run_id=last.id,
        status=answer.status,
        content_type=answer.content_type,
        body=answer.body.decode(),
        headers=dict(answer.headers),
    )
