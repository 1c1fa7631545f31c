"""`tracon demo`: what the service promises, acted out in a minute with nothing but this machine."""

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import click
import msgspec
from rich.console import Console
from rich.text import Text

from app.cli.client import Client
from app.cli.demo_outage import a_provider_dies
from app.cli.demo_readers import other_models_help
from app.cli.event_table import event_table
from app.cli.service_process import ServiceProcess
from app.cli.story import StoryBroken, heading
from app.db.migrate import sql_folder
from app.http.display import EventView, FrameView
from domain.ids import RunId

QUESTION = "Where is my order 1042?"
SEEN_BEFORE_THE_KILL = 12


@click.command()
def demo() -> None:
    """Act out in a minute what Tracon does, a kill included."""
    # Like Ctrl-C: the service must not be left over.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with TemporaryDirectory(prefix="tracon-demo-", ignore_cleanup_errors=True) as folder:
        try:
            asyncio.run(_tell(Console(highlight=False), Path(folder)))
        except (aiohttp.ClientError, msgspec.MsgspecError, TimeoutError) as error:
            raise StoryBroken(str(error) or type(error).__name__) from error


async def _tell(console: Console, folder: Path) -> None:
    async with aiohttp.ClientSession() as http:
        async with _service(console, folder) as service:
            client = Client(http, service.url)
            run_id = await _a_run_streams(console, client)
            events = await _it_is_on_record(console, client, run_id)
            await a_provider_dies(console, client)
            await other_models_help(console, client)
            seen = await _a_run_is_cut_off(console, client, service)
        async with _service(console, folder) as service:
            client = Client(http, service.url)
            await _nothing_is_lost(console, client, seen)
            if await client.events(run_id) != events:
                raise StoryBroken("the first run's events have changed")
            if status := await service.stop():
                raise StoryBroken(f"the service ended with status {status} when it was asked to stop")
    _what_next(console)


@asynccontextmanager
async def _service(console: Console, folder: Path) -> AsyncIterator[ServiceProcess]:
    heading(console, "A service starts.", "Its Postgres is real, its model provider is a script.")
    files = sql_folder() / "demo"
    service = await ServiceProcess.start(
        *("--app", str(files / "app.py"), "--config", str(files / "tracon.toml")),
        *("--port", "0", "--data-dir", str(folder / "data")),
        log=folder / "service.log",
    )
    try:
        console.print(f"  It is ready at {service.url}")
        yield service
    finally:
        await service.close()


async def _a_run_streams(console: Console, client: Client) -> RunId:
    heading(console, "A run streams.", f"The agent support is asked: {QUESTION}")
    frames = [frame async for frame in _shown(console, client, "support", QUESTION)]
    console.print()
    if not frames or frames[-1].type != "RunCompleted":
        raise StoryBroken(f"the run ended with {frames[-1].type if frames else 'nothing'}")
    return frames[0].run_id


async def _it_is_on_record(console: Console, client: Client, run_id: RunId) -> Sequence[EventView]:
    heading(console, "All of it is on record,", f"numbered as it was sent. Run {run_id}:")
    events = await client.events(run_id)
    console.print(event_table(events))
    if "ToolReturned" not in {event.type for event in events}:
        raise StoryBroken("no tool was called")
    return events


async def _a_run_is_cut_off(console: Console, client: Client, service: ServiceProcess) -> list[FrameView]:
    heading(console, "The service is killed", "in the middle of another run, with no chance to clean up.")
    seen: list[FrameView] = []
    async with aclosing(_shown(console, client, "slow", "Tell me a long story.")) as frames:
        async for frame in frames:
            seen.append(frame)
            if len(seen) == SEEN_BEFORE_THE_KILL:
                break
        await service.kill()
    if len(seen) < SEEN_BEFORE_THE_KILL:
        raise StoryBroken("the run ended before it could be cut off")
    console.print(f" [bold red]killed[/]\n  {len(seen)} events had been received by then.")
    return seen


async def _nothing_is_lost(console: Console, client: Client, seen: Sequence[FrameView]) -> None:
    heading(console, "Nothing that was received is lost.", f"Run {seen[0].run_id}:")
    events = await client.events(seen[0].run_id)
    console.print(event_table(events))
    if [event.sequence for event in events] != list(range(1, len(events) + 1)):
        raise StoryBroken("the run that was cut off has a gap")
    if [_numbered(frame) for frame in seen] != [*events[: len(seen)]]:
        raise StoryBroken("what is on record differs from what was received")
    console.print(f"[green]  All {len(seen)} events that were received are there, with their numbers.[/]")
    console.print("  The run stays Running: nothing closes the runs of a dead host yet.")


async def _shown(
    console: Console, client: Client, agent: str, message: str
) -> AsyncGenerator[FrameView, None]:
    """The frames of a new run, each shown as it comes."""
    console.print("  ", end="")
    async with aclosing(client.run(agent, message)) as frames:
        async for frame in frames:
            console.print(_as_text(frame), end="")
            yield frame


def _as_text(frame: FrameView) -> Text:
    match frame.type:
        case "TextDelta":
            return Text(frame.data["text"])
        case "ToolInvoking":
            return Text(f"\n  calls {frame.data['tool']} {frame.data['arguments']}", style="yellow")
        case "ToolReturned":
            return Text(f"\n  gets {frame.data['output']}\n  ", style="yellow")
        case _:
            return Text()


def _numbered(frame: FrameView) -> EventView:
    if not isinstance(frame.sequence, int) or isinstance(frame.at, msgspec.UnsetType):
        raise StoryBroken("a frame came without a number")
    return EventView(sequence=frame.sequence, type=frame.type, at=frame.at, data=frame.data)


def _what_next(console: Console) -> None:
    heading(console, "What to try next:", "")
    console.print("  make run                      the same agents, on port 8080")
    console.print("  tracon replay RUN_ID          a run's events, checked for gaps")
    console.print("  tracon serve --app yours.py   an agent of your own, as in README.md")
