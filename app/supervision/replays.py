"""Running again what another run was given, with its tools' results, with none, or for real."""

from typing import Any, cast

import msgspec

from app.definitions.lookup import AgentLookup
from app.identity import new_run_id
from app.quotas.quotas import Asked, Quotas
from app.store.event_log import EventLog
from app.supervision.continuer import Continuer
from app.supervision.defining import looked_up
from app.supervision.drain import Drain
from app.supervision.opening import Opener, Opening
from app.supervision.runs import Runs
from domain.agent import AgentDefinition, Link
from domain.commands import CreateRun
from domain.errors import Rejected
from domain.events import Recorded, RunCreated, RunKind, SessionEvent
from domain.ids import RunId, session_stream
from domain.ledger import Ledger, inherited
from domain.messages import Message
from domain.replay import Replay, ReplayTools
from domain.run import Run
from domain.session import fold as fold_session
from domain.submission import Overrides, overridden


class NotReplayable(Rejected):
    """There is nothing to run again in the way that was asked for. The message says what can be asked for."""

    code = "not_replayable"


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to run again, and what is to be different. None: as the run had it."""

    tenant: str
    run_id: RunId
    tools: ReplayTools
    recorded_definition: bool = False
    """With the definition that the run started with, instead of the agent's present one."""
    parameters: dict[str, Any] | None = None
    overrides: Overrides | None = None
    link: Link | None = None
    """One model alone, without fallbacks."""


class Replays:
    """A replay belongs to no session: it is shown what the run was shown of one, and adds nothing to it."""

    def __init__(
        self,
        event_log: EventLog,
        runs: Runs,
        continuer: Continuer,
        opener: Opener,
        agents: AgentLookup,
        drain: Drain,
        quotas: Quotas,
    ) -> None:
        self._log = event_log
        self._runs = runs
        self._continuer = continuer
        self._opener = opener
        self._agents = agents
        self._drain = drain
        self._quotas = quotas

    async def start(self, request: ReplayRequest) -> RunId:
        """Open the replay. Raise RunNotFound, NotReplayable, AgentNotFound, BadParameter, UnusableAgent,
        QuotaExceeded, Draining or StoreUnavailable.
        """
        self._drain.admit()
        run = await self._runs.load(request.run_id, request.tenant)
        created = run.created
        if created is None or created.kind is not RunKind.AGENT:
            raise NotReplayable("only runs of agents can be replayed")
        create = _creation(created, request)
        definition = await self._definition(run, create, request)
        self._agents.verify(definition)
        opening = Opening(
            run_id=new_run_id(),
            create=create,
            definition=definition,
            ledger=await self._ledger(request),
            history=await self._history(run, created),
        )
        async with self._quotas.admitted(created.tenant, Asked(opening.run_id, created.agent)):
            await self._opener.open(opening)
        return opening.run_id

    async def _definition(self, run: Run, create: CreateRun, request: ReplayRequest) -> AgentDefinition:
        if not request.recorded_definition:
            definition = await looked_up(self._agents, create)
        elif run.definition is None:
            raise NotReplayable("the run never began, so no definition is recorded; use the current one")
        elif request.parameters is not None:
            raise NotReplayable("a recorded definition has its parameters filled in; use the current one")
        else:
            definition = overridden(run.definition, request.overrides)
        return definition if request.link is None else _on_one_link(definition, request.link)

    async def _ledger(self, request: ReplayRequest) -> Ledger:
        """Summaries are used again in any case: they are of what was said, and that is said again."""
        chain = await self._continuer.chain_of(request.run_id)
        recorded = inherited((past.run_id, past.events) for past in chain)
        return recorded if request.tools is ReplayTools.RECORDED else Ledger(summaries=recorded.summaries)

    async def _history(self, run: Run, created: RunCreated) -> tuple[Message, ...]:
        """What the run had before its input: its session as it was then, or what the run it replays had."""
        if created.replay is not None:
            replayed = await self._runs.load(created.replay.run_id)
            return () if replayed.created is None else await self._history(replayed, replayed.created)
        if created.session_id is None or not run.session_version:
            return ()
        stream = session_stream(created.tenant, created.session_id)
        recorded = await self._log.read_stream(stream, limit=run.session_version)
        return fold_session(cast(list[Recorded[SessionEvent]], recorded)).messages


def _creation(created: RunCreated, request: ReplayRequest) -> CreateRun:
    return CreateRun(
        tenant=created.tenant,
        agent=created.agent,
        input=created.input,
        parameters={**created.parameters, **(request.parameters or {})},
        overrides=_over(created.overrides, request.overrides),
        replay=Replay(run_id=request.run_id, tools=request.tools),
        decisions=created.decisions,
    )


def _over(recorded: Overrides | None, asked: Overrides | None) -> Overrides | None:
    """What this replay asks for stands above what the run was asked for."""
    if recorded is None or asked is None:
        return asked or recorded
    given = {
        field.name: value
        for field in msgspec.structs.fields(Overrides)
        if (value := getattr(asked, field.name)) != field.default
    }
    return msgspec.structs.replace(recorded, **given)


def _on_one_link(definition: AgentDefinition, link: Link) -> AgentDefinition:
    """Extra fields of a request are the primary's and would mean nothing to another (CHAIN-5)."""
    return msgspec.structs.replace(
        definition, provider=link.provider, model=link.model, fallbacks=(), provider_settings={}
    )
