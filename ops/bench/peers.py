"""`/v1/chat/completions` beside two proxies that keep nothing, LiteLLM's and Portkey's, and a bare floor.

    python -m ops.bench peers

One client calls each of them in turns, over the same instant upstream, one request at a time and 64 at once.
Each is one process with its defaults; ours keeps every run in Postgres before it answers, they keep nothing.
The floor (`ops.bench.bare`) stores two rows for each answer and does nothing else: what no durable service of
these parts can be faster than. Client, upstream, Postgres and all four share the machine. The peers are
installed at the first call, from their registries, into the folder that TRACON_BENCH_PEERS names (default:
`.peers`); it needs Node.js and npm.
"""

import asyncio
import os
import secrets
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from aiohttp import ClientError, ClientSession, TCPConnector

from ops.bench.report import ratio, spread, table
from ops.bench.service import processes, running

CONCURRENT = 64
CALLS = 100
SPAN_S = 5.0
"""How long each is driven at full rate in a round."""
_STARTS_WITHIN_S = 180.0
_BODY = {"model": "instant", "messages": [{"role": "user", "content": "hello"}]}
_LITELLM_CONFIG = """
model_list:
  - model_name: instant
    litellm_params: {{model: openai/instant, api_base: "{upstream}/v1", api_key: none}}
"""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One service that answers chat completions, and what was measured of it, a figure per round."""

    name: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    median_ms: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)


def run(rounds: int = 5) -> None:
    """Measure in turns and print the table."""
    folder = Path(os.environ.get("TRACON_BENCH_PEERS", ".peers")).absolute()
    litellm, portkey = _litellm(folder), _portkey(folder)
    with ExitStack() as stack:
        both = stack.enter_context(processes())
        contenders = [
            Contender(name="tracon", url=f"{both.url}/tracon/v1"),
            stack.enter_context(_litellm_running(litellm, folder, both.upstream)),
            stack.enter_context(_portkey_running(portkey, folder, both.upstream)),
            stack.enter_context(_bare_running(folder, both.upstream)),
        ]
        uvloop.run(_measure(contenders, rounds))
    _show(contenders, rounds)


async def _measure(contenders: list[Contender], rounds: int) -> None:
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        for contender in contenders:
            await _answers(session, contender)
            await _per_second(session, contender)  # warm
        for _ in range(rounds):
            for contender in contenders:
                contender.median_ms.append(await _median_ms(session, contender))
            for contender in contenders:
                contender.per_second.append(await _per_second(session, contender))


def _show(contenders: list[Contender], rounds: int) -> None:
    ours = contenders[0]
    rows = [
        (
            one.name,
            spread(one.median_ms, ".2f"),
            spread(one.per_second),
            f"{ratio(ours.median_ms, one.median_ms):.2f}",
            f"{ratio(ours.per_second, one.per_second):.2f}",
        )
        for one in contenders
    ]
    columns = (
        "",
        "p50 ms, 1 at a time",
        f"requests/s, {CONCURRENT} at a time",
        "our p50 / its",
        "our rate / its",
    )
    targets = "targets: 10 times LiteLLM's rate, at least Portkey's, p50 at most Portkey's; ours is durable"
    table(
        f"Chat completions, instant upstream: median (least..most) of {rounds} rounds", columns, rows, targets
    )


async def _call(session: ClientSession, contender: Contender) -> None:
    url = f"{contender.url}/chat/completions"
    async with session.post(url, json=_BODY, headers=contender.headers) as response:
        answer = await response.read()
        if response.status != 200 or b"Hello there." not in answer:
            raise RuntimeError(f"{contender.name} answered {response.status}: {answer[:500]!r}")


async def _answers(session: ClientSession, contender: Contender) -> None:
    """Return once it does."""
    until = time.monotonic() + _STARTS_WITHIN_S
    while True:
        try:
            return await _call(session, contender)
        except ClientError:
            if time.monotonic() > until:
                raise
        await asyncio.sleep(0.2)


async def _median_ms(session: ClientSession, contender: Contender) -> float:
    figures = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await _call(session, contender)
        figures.append((time.perf_counter() - began) * 1000)
    return statistics.median(figures)


async def _per_second(session: ClientSession, contender: Contender) -> float:
    began, answered = time.perf_counter(), 0

    async def client() -> None:
        nonlocal answered
        while time.perf_counter() - began < SPAN_S:
            await _call(session, contender)
            answered += 1

    await asyncio.gather(*(client() for _ in range(CONCURRENT)))
    return answered / (time.perf_counter() - began)


def _litellm(folder: Path) -> Path:
    command = folder / "litellm" / "bin" / "litellm"
    if not command.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "litellm"], check=True)
        subprocess.run([folder / "litellm/bin/pip", "-q", "install", "litellm[proxy]"], check=True)
    return command


def _portkey(folder: Path) -> Path:
    server = folder / "portkey/node_modules/@portkey-ai/gateway/build/start-server.js"
    if not server.exists():
        (folder / "portkey").mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--silent", "--prefix", str(folder / "portkey"), "@portkey-ai/gateway"]
        subprocess.run(install, check=True)
    return server


@contextmanager
def _litellm_running(command: Path, folder: Path, upstream: str) -> Iterator[Contender]:
    config, port, key = folder / "litellm.yaml", _free_port(), f"sk-{secrets.token_hex(16)}"
    config.write_text(_LITELLM_CONFIG.format(upstream=upstream))
    started = [
        str(command),
        "--config",
        str(config),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--telemetry",
        "False",
    ]
    # It does not start without a key, and would look for a newer price list outside.
    environment = {"LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    with _running(started, folder / "litellm.log", **environment):
        headers = {"Authorization": f"Bearer {key}"}
        yield Contender(name="LiteLLM proxy", url=f"http://127.0.0.1:{port}/v1", headers=headers)


@contextmanager
def _portkey_running(server: Path, folder: Path, upstream: str) -> Iterator[Contender]:
    port = _free_port()
    headers = {
        "Authorization": "Bearer none",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": f"{upstream}/v1",
    }
    with _running(
        ["node", server, f"--port={port}", "--headless"], folder / "portkey.log", NODE_ENV="production"
    ):
        yield Contender(name="Portkey gateway", url=f"http://127.0.0.1:{port}/v1", headers=headers)


@contextmanager
def _bare_running(folder: Path, upstream: str) -> Iterator[Contender]:
    command = [sys.executable, "-m", "ops.bench.bare", upstream]
    with running(command, folder / "bare.log") as (_, url):
        yield Contender(name="two INSERTs, no more", url=f"{url}/v1")


@contextmanager
def _running(command: Sequence[Path | str], output: Path, **environment: str) -> Iterator[None]:
    with output.open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | environment)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
