"""Hosts that die in the middle of a run, and others that find it."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import msgspec

from app.main import Host
from app.supervision.runs import Runs
from app.tools.tool import Tool
from domain import events as e
from domain.commands import FailRun
from domain.continuation import ORPHANED
from domain.failure import ErrorClass, RunError
from domain.ids import RunId, run_stream
from tests.hosts import scripted
from tracon import ToolContext, tool

GONE = RunError(message="its host is gone", type=ORPHANED, error_class=ErrorClass.INFRASTRUCTURE)
CONTINUING = (
    "[run_reconciliation]\nenabled = true\n[run_continuation]\nenabled = true\nmax_attempts = {attempts}\n"
)


class Call(msgspec.Struct, frozen=True):
    """A tool call that the world outside has seen begin."""

    host: str
    tool: str
    key: str


class World:
    """What tools did, on whichever host.

    `held`: on this host this tool has its effect and then does not come back.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.held: tuple[str, str] | None = None
        self.reached = asyncio.Event()

    def tools(self, host: str, *effects: tuple[str, e.ToolEffect, bool]) -> tuple[Tool, ...]:
        """Tools of these names, effects and safety, each of which says where it ran."""
        return tuple(self._tool(host, *one) for one in effects)

    def _tool(self, host: str, name: str, effect: e.ToolEffect, safe: bool) -> Tool:
        @tool(name=name, effect=effect, safe_to_repeat=safe)
        async def function(context: ToolContext) -> str:
            """Do it."""
            self.calls.append(Call(host, name, context.call_key))
            if self.held == (host, name):
                self.reached.set()
                await asyncio.Event().wait()
            return f"{name} is done"

        return function

    def ran(self, host: str | None = None) -> Counter[str]:
        """How often each tool ran, on all hosts or on one."""
        return Counter(call.tool for call in self.calls if host in (None, call.host))

    def keys(self, name: str) -> set[str]:
        return {call.key for call in self.calls if call.tool == name}


def settings(steps: Sequence[str], *, silent_after: int | None = None, attempts: int = 1) -> str:
    """An agent that calls these tools one step after another and then answers.

    `silent_after`: on this host its model falls silent after so many steps, once.
    """
    called = [f'tool_call = {{ name = "{name}" }}' for name in steps]
    script = "" if silent_after is None else _tables("script", [*called[:silent_after], "silent = true"])
    models = script + _tables("default", [*called, 'text = "All done."'])
    names = ", ".join(f'"{name}"' for name in dict.fromkeys(steps))
    agents = f'[agents.a]\nprovider = "script"\nmodel = "m"\ntools = [{names}]\n'
    return scripted(models, agents, CONTINUING.format(attempts=attempts))


def _tables(kind: str, behaviours: Sequence[str]) -> str:
    return "".join(f"[[providers.script.models.m.{kind}]]\n{behaviour}\n" for behaviour in behaviours)


async def silent(host: Host, run_id: RunId, after: int) -> None:
    """Return once the run waits for the model call that follows so many steps."""
    async for batch in host.services.log.follow(run_stream(run_id), 0):
        if any(isinstance(r.event, e.ModelCallStarted) and r.event.step == after + 1 for r in batch):
            return


async def die(host: Host) -> None:
    """All of the host's runs are cut off where they are."""
    await host.roster.stop()


async def close_orphan(host: Host, run_id: RunId) -> None:
    """As the reconciler does when it has found the run silent: close it and say so."""
    await Runs(host.services.log).execute(run_id, FailRun(error=GONE))
    for told in host.orphans.on_orphaned:
        await told(run_id)


async def successor(host: Host, run_id: RunId) -> RunId:
    """The run that goes on in its place."""
    recorded = await host.services.log.read_stream(run_stream(run_id))
    [by] = [one.event.by for one in recorded if isinstance(one.event, e.RunContinued)]
    return by
