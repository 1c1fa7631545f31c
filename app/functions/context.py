"""What a function of a workflow may know about the node that calls it, and what it may decide."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

import msgspec

from app.tools.context import OnUsage, only_log, usage_of
from domain.ids import RunId


class WorkflowContext(msgspec.Struct, frozen=True, kw_only=True):
    """A function gets it in a parameter that is annotated with this class.

    `call_key` is an idempotency key to send along to the outside world: it is the same when the node is tried
    again, or repeated after a crash. `deadline` is the run's, in UTC.
    """

    tenant: str
    run_id: RunId
    session_id: str | None
    workflow: str
    node: str
    attempt: int
    """From 1; more where the function is tried again."""
    call_key: str
    input: str
    """What the workflow was given."""
    inputs: Mapping[str, str]
    """The outputs of the super-step before, by node."""
    outputs: Mapping[str, str]
    """The last output of every node that has one."""
    deadline: datetime | None = None
    on_usage: OnUsage = only_log
    """Told of every report. Called in the thread of the function."""

    def report_usage(self, amount: Decimal | float | str | None, currency: str | None, kind: str) -> None:
        """Say what this node has just spent. Raise ValueError for what is no amount."""
        self.on_usage(usage_of(amount, currency, kind))


class Handoff(msgspec.Struct, frozen=True):
    """What a function returns to give the word to another node, in a handoff or as a chat's manager."""

    to: str
    text: str = ""


class Done(msgspec.Struct, frozen=True):
    """What a function returns to end a group chat."""

    text: str = ""


class Transient(Exception):
    """Raise it, or an error that is one, for a failure that may pass: the node may be tried again."""
