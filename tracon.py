"""What the authors of tools, agents and workflows import. It is kept stable; nothing else is promised."""

from app.agents import Agent
from app.functions.context import Done, Handoff, Transient, WorkflowContext
from app.functions.function import workflow_function
from app.functions.workflow import Workflow
from app.models.classifiers import classifier
from app.tools.context import ToolContext
from app.tools.tool import tool
from domain.events import ToolEffect
from domain.failure import CallFailure, FailureClass, FailureKind

__all__ = [
    "Agent",
    "CallFailure",
    "Done",
    "FailureClass",
    "FailureKind",
    "Handoff",
    "ToolContext",
    "ToolEffect",
    "Transient",
    "Workflow",
    "WorkflowContext",
    "classifier",
    "tool",
    "workflow_function",
]
