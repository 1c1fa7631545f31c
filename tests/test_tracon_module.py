"""The one module that authors import."""

import subprocess
import sys

import tracon
from app.agents import Agent
from app.tools.context import ToolContext
from app.tools.tool import tool
from domain.events import ToolEffect


def test_it_has_what_a_tool_and_an_agent_are_made_of_and_nothing_of_its_own() -> None:
    assert {"Agent", "ToolContext", "ToolEffect", "tool"} <= set(tracon.__all__)
    assert (tracon.Agent, tracon.ToolContext, tracon.ToolEffect, tracon.tool) == (
        Agent,
        ToolContext,
        ToolEffect,
        tool,
    )
    assert all(vars(tracon)[name].__module__ != "tracon" for name in tracon.__all__)


def test_it_is_light_enough_for_a_unit_test_of_a_tool() -> None:
    """Neither the server, nor the database driver, nor a provider's client comes with it."""
    heavy = "print(sorted({'aiohttp', 'asyncpg', 'eventsourcing', 'uvloop'} & set(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys, tracon; {heavy}"], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"
