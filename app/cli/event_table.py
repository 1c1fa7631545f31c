"""A run's events as a table: one line each, with what tells most about it."""

from collections.abc import Iterable
from typing import Any

import msgspec
from rich.table import Table
from rich.text import Text

from app.http.display import EventView

# Fields that say most about an event, where all of them would not fit on a line.
_TELLING = {
    "RunCreated": ("agent", "input"),
    "RunStarted": ("host",),
    "ModelCallStarted": ("provider", "model"),
    "TextDelta": ("text",),
    "ModelReplied": ("finish", "usage"),
    "ModelCallFailed": ("failure_class", "failure"),
    "ToolInvoking": ("tool", "arguments"),
    "ToolReturned": ("tool", "output"),
    "ToolFailed": ("tool", "failure", "output"),
    "ToolOutcomeUnknown": ("tool", "reason"),
    "SideCallStarted": ("purpose", "provider", "model"),
    "SideCallReplied": ("purpose", "provider", "model", "usage", "cost"),
    "SideCallFailed": ("purpose", "failure_class", "failure"),
    "ContextCompacted": ("context_tokens", "summary"),
    "WorkflowOpened": ("from_checkpoint", "progress"),
    "NodeInvoked": ("node", "kind", "attempt"),
    "NodeCompleted": ("output",),
    "NodeFailed": ("node", "attempt", "error_type", "error"),
    "RunCompleted": ("answer",),
    "RunFailed": ("error_type", "error"),
    "RunAwaitingApproval": ("calls",),
    "RunAwaitingInput": ("requests",),
}


def event_table(events: Iterable[EventView]) -> Table:
    """Sequence numbers, milliseconds since the first event, types and facts."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True, style="dim")
    table.add_column("event", no_wrap=True, style="cyan")
    table.add_column("facts", no_wrap=True, overflow="ellipsis", ratio=1)
    began = None
    for event in events:
        began = began or event.at
        elapsed_ms = (event.at - began).total_seconds() * 1000
        table.add_row(str(event.sequence), f"{elapsed_ms:.0f}", event.type, Text(_facts(event)))
    return table


def _facts(event: EventView) -> str:
    names = _TELLING.get(event.type, tuple(event.data))
    return " ".join(f"{name}={_json(event.data[name])}" for name in names if event.data.get(name) is not None)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
