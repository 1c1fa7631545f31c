"""The functions of the workflow that is killed. Each body says in a file of its host that it began."""

import json
import os
import time

from tracon import WorkflowContext, workflow_function

_LOG = os.environ["CHAOS_TOOL_LOG"]


def _note(context: WorkflowContext) -> None:
    line = {
        "node": context.node,
        "run_id": str(context.run_id),
        "call_key": context.call_key,
        "inputs": sorted(context.inputs),
    }
    file = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


@workflow_function
def weigh(text: str, context: WorkflowContext) -> str:
    _note(context)
    time.sleep(0.02)
    return f"weighed {text}"


@workflow_function
async def count(text: str, context: WorkflowContext) -> str:
    _note(context)
    return f"counted {text}"


@workflow_function
def publish(text: str, context: WorkflowContext) -> str:
    _note(context)
    return f"published after {text}"
