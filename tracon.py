"""What the authors of tools and agents import. Everything here is kept stable; nothing else is promised."""

from app.agents import Agent
from app.tools.context import ToolContext
from app.tools.tool import tool
from domain.events import ToolEffect

__all__ = ["Agent", "ToolContext", "ToolEffect", "tool"]
