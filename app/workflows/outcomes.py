"""What is put on record of a node that failed."""

from time import monotonic

import msgspec

from domain.commands.workflow import RecordNodeFailure
from domain.failure import RunError
from domain.workflow.definition import WorkflowNode


def failed(
    node: WorkflowNode, error: RunError, began: float, retry_in_s: float | None = None
) -> RecordNodeFailure:
    """The failure names the node. `began` is by `time.monotonic`."""
    return RecordNodeFailure(
        node=node.name,
        error=msgspec.structs.replace(error, message=f"node {node.name}: {error.message}"),
        retry_in_ms=None if retry_in_s is None else round(retry_in_s * 1000),
        duration_ms=round((monotonic() - began) * 1000),
    )
