"""What the authors of tools and agents import. Everything here is kept stable; nothing else is promised."""

from app.agents import Agent
from app.models.classifiers import classifier
from app.tools.context import ToolContext
from app.tools.tool import tool
from domain.events import ToolEffect
from domain.failure import CallFailure, FailureClass, FailureKind

__all__ = [
    "Agent",
    "CallFailure",
    "FailureClass",
    "FailureKind",
    "ToolContext",
    "ToolEffect",
    "classifier",
    "tool",
]
