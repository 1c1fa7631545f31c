"""What clients send about runs that are over: what a call came to, what to run again."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from app.http.bodies import Body, ListQuery, Moment, in_utc
from app.http.errors import BadBody, FieldError
from app.supervision.replays import ReplayRequest
from domain.agent import Link, ModelOptions
from domain.commands import ResolveTool
from domain.ids import RunId
from domain.replay import ReplayTools
from domain.submission import Overrides
from projections.read.tools import ToolCallFilter
from projections.tool_calls import ToolCallState

Shown = Literal["invoking", "returned", "failed", "unknown"]


class ToolsQuery(ListQuery, frozen=True, kw_only=True):
    """Filters, which must all hold, and the part of the list."""

    run_id: RunId | UnsetType = UNSET
    tool: str | UnsetType = UNSET
    state: Shown | UnsetType = UNSET
    """`unknown`: those that somebody has to look into."""
    since: Moment | UnsetType = UNSET
    """Asked for then or later."""
    until: Moment | UnsetType = UNSET
    """Asked for before then."""

    @property
    def filter(self) -> ToolCallFilter:
        """Raise BadQuery for a time that no calendar has."""
        return ToolCallFilter(
            run_id=self.run_id or None,
            tool=self.tool or None,
            state=ToolCallState(self.state) if self.state else None,
            since=in_utc("since", self.since) or None,
            until=in_utc("until", self.until) or None,
        )


class ResolveBody(Body, frozen=True, kw_only=True):
    output: str
    """What a model that makes this call again is given to read."""
    failed: bool = False

    def command(self, call_id: str) -> ResolveTool:
        return ResolveTool(call_id=call_id, output=self.output, failed=self.failed)


class ReplayBody(Body, frozen=True, kw_only=True):
    """What is to be different from the run that is replayed; all of it may be left out."""

    tools: ReplayTools = ReplayTools.RECORDED
    """`live` has its effects again, and needs the scope `admin`."""
    definition: Literal["current", "recorded"] = "current"
    """The agent as it is defined today, or as it was when the run began."""
    parameters: dict[str, Any] | UnsetType = UNSET
    """Those that are given stand above the recorded ones."""
    provider: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    """Together with `model`: that model alone, without fallbacks."""
    model: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    options: ModelOptions = ModelOptions()
    instructions: str = ""
    """They follow the agent's own."""

    def request(self, tenant: str, run_id: RunId) -> ReplayRequest:
        """Raise BadBody for what types cannot say."""
        overrides = Overrides(options=self.options, instructions=self.instructions)
        return ReplayRequest(
            tenant=tenant,
            run_id=run_id,
            tools=self.tools,
            recorded_definition=self.definition == "recorded",
            parameters=None if self.parameters is UNSET else self.parameters,
            overrides=None if overrides == Overrides() else overrides,
            link=self._link(),
        )

    def _link(self) -> Link | None:
        match self.provider, self.model:
            case str(provider), str(model):
                return Link(provider=provider, model=model)
            case UnsetType(), UnsetType():
                return None
            case str(), _:
                missing = "model"
            case _:
                missing = "provider"
        message = "provider and model go together"
        raise BadBody(f"{missing}: {message}", FieldError(field=f"$.{missing}", message=message))
