"""Approvals: what waits for a person's decision, and deciding it (TOOL-2)."""

from asyncio import shield
from typing import Annotated, Literal
from uuid import UUID

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import replace

from app.http.bodies import Body, ListQuery, NoQuery
from app.http.decoding import body_of, query_of
from app.http.display import cut_text
from app.http.errors import BadBody, FieldError
from app.http.events import name_run
from app.http.replies import reply
from app.http.services import key_of, services_of, tenant_of
from app.supervision.approvals import History, Verdict
from domain.approval import ApprovalNotFound, ApprovalState
from domain.events import CallDecision
from domain.ids import RunId
from projections.approval_record import ApprovalRecord, approval_of
from projections.base import BrokenStream
from projections.read.approvals import ApprovalFilter
from projections.read.approvals import list_approvals as read_approvals

Decision = Literal["approve", "reject"]
Reason = Annotated[str, Meta(max_length=2000)]


class CallDecisionBody(Body, frozen=True, kw_only=True):
    decision: Decision
    reason: Reason = ""
    """A model reads it, if the call is rejected."""

    def plain(self) -> CallDecision:
        return CallDecision(approved=self.decision == "approve", reason=self.reason)


class DecideBody(Body, frozen=True, kw_only=True):
    """What is decided of all calls, or in `calls` of each by its id; both, and `calls` stands above it."""

    decision: Decision | UnsetType = UNSET
    reason: Reason = ""
    calls: dict[str, CallDecisionBody] = field(default_factory=dict)

    def verdict(self, by: str | None) -> Verdict:
        """Raise BadBody."""
        if self.decision is UNSET and not self.calls:
            told = "say approve or reject, of all calls or of each in calls"
            raise BadBody(f"decision: {told}", FieldError(field="$.decision", message=told))
        of_all = None
        if self.decision is not UNSET:
            of_all = CallDecision(approved=self.decision == "approve", reason=self.reason)
        of_each = {call_id: said.plain() for call_id, said in self.calls.items()}
        return Verdict(of_all=of_all, of_each=of_each, by=by, reason=self.reason)


class ApprovalsQuery(ListQuery, frozen=True, kw_only=True):
    """Filters, which must all hold, and the part of the list."""

    state: ApprovalState | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET

    @property
    def filter(self) -> ApprovalFilter:
        return ApprovalFilter(
            state=self.state or None, agent=self.agent or None, session_id=self.session_id or None
        )


async def list_approvals(request: web.Request) -> web.Response:
    """Newest first, from a view."""
    wanted, services = query_of(request, ApprovalsQuery), services_of(request)
    page = await read_approvals(
        services.pool, tenant_of(request), wanted.filter, skip=wanted.skip, take=wanted.take
    )
    limit = services.recording.display_limit
    shown = [_displayed(approval, limit) for approval in page.approvals]
    return reply(replace(page, approvals=shown))


async def get_approval(request: web.Request) -> web.Response:
    """Folded from its own stream, so that it is never behind."""
    query_of(request, NoQuery)
    history = await services_of(request).approvals.history(tenant_of(request), _approval_id(request))
    return reply(_record(request, history))


async def decide_approval(request: web.Request) -> web.Response:
    """The same once more is answered as the first time. The run that goes on is named in the answer."""
    query_of(request, NoQuery)
    run_id, services = _approval_id(request), services_of(request)
    verdict = (await body_of(request, DecideBody)).verdict(key_of(request))
    history = await shield(services.approvals.decide(tenant_of(request), run_id, verdict))
    record = _record(request, history)
    if record.opened_run_id is None:
        raise BrokenStream(f"approval {run_id} was decided and opened no run")
    name_run(request, record.opened_run_id)
    return reply(record, headers={"Location": f"{services.server.prefix}/api/runs/{record.opened_run_id}"})


def _approval_id(request: web.Request) -> RunId:
    """Raise ApprovalNotFound for what is no id."""
    text = request.match_info["id"]
    try:
        return RunId(UUID(text))
    except ValueError:
        raise ApprovalNotFound(text) from None


def _record(request: web.Request, history: History) -> ApprovalRecord:
    record = approval_of(history)
    if record is None:
        raise BrokenStream("an approval's stream begins with something else")
    return _displayed(record, services_of(request).recording.display_limit)


def _displayed(record: ApprovalRecord, limit: int) -> ApprovalRecord:
    """With long arguments cut (EVENT-7); the run's stream has them whole."""
    calls = tuple(replace(call, arguments=cut_text(call.arguments, limit)) for call in record.calls)
    return replace(record, calls=calls)
