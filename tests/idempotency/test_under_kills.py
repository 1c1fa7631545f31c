"""Two hosts, one of which is killed again and again: each key's request is carried out once (IDEM)."""

import asyncio
import random
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import asyncpg
import msgspec
import pytest

from tests.cli.command import TRACON, environment

KEYS = [f"order-{number}" for number in range(20)]
CLIENTS = 50
KILLS = 4
SHOP = Path(__file__).with_name("shop.py")

SETTINGS = """
[run_reconciliation]
enabled = true
heartbeat_interval = "100ms"
orphan_threshold = "1s"
scan_interval = "200ms"

[run_continuation]
enabled = true
max_attempts = 100

[idempotency]
sweep_interval = "500ms"

[providers.script]
type = "scripted"

[[providers.script.models.clerk.default]]
text = "One moment."
first_delay = "100ms"
tool_call = { name = "charge" }

[[providers.script.models.clerk.default]]
last_tool_result = "Paid, receipt {result}."
first_delay = "150ms"
"""

Answer = tuple[int, str, bytes]


class Host:
    """`tracon serve` in a process of its own, which comes back under a new address after each kill."""

    def __init__(self, folder: Path, name: str, dsn: str) -> None:
        self._folder = folder
        self._name = name
        self._dsn = dsn
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    async def start(self) -> None:
        """Return when it takes requests."""
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        settings = self._folder / "tracon.toml"
        with (self._folder / f"{self._name}.log").open("ab") as errors:
            self._process = subprocess.Popen(
                (TRACON, "serve", "--port", "0", "--app", str(SHOP), "--config", str(settings)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment({"TRACON_DSN": self._dsn, "SHOP_WORLD": str(self._folder / "world")}),
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"{self._name} did not start"
        self.url = line.split()[-1]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def kill(self) -> None:
        """The way an operating system does it: no goodbye."""
        await asyncio.to_thread(self._kill)

    def _kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)
            assert self._process.stdout is not None
            self._process.stdout.close()


@asynccontextmanager
async def two_hosts(folder: Path, dsn: str) -> AsyncIterator[tuple[Host, Host]]:
    (folder / "world").mkdir()
    (folder / "tracon.toml").write_text(SETTINGS)
    hosts = Host(folder, "steady", dsn), Host(folder, "mortal", dsn)
    async with AsyncExitStack() as stack:
        for host in hosts:
            stack.push_async_callback(host.kill)
        await asyncio.gather(*(host.start() for host in hosts))
        yield hosts


async def insist(http: aiohttp.ClientSession, choose: Callable[[], Host], key: str) -> Answer:
    """Send the same request to one host or the other until it is answered. Never another one."""
    body = msgspec.json.encode({"message": f"charge {key}", "session_id": key})
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    while True:
        url = f"{choose().url}/tracon/api/agents/clerk/run"
        try:
            async with http.post(url, data=body, headers=headers) as response:
                answer = (response.status, response.headers["Content-Type"], await response.read())
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
            await asyncio.sleep(0.1)  # as a client would
            continue
        if answer[0] == 200:
            return answer
        assert answer[0] in (409, 503), answer
        await asyncio.sleep(0.1)


async def at_work(conn: asyncpg.Connection, host: Host) -> None:
    """Return when a run has begun on the host that is not over yet."""
    async with asyncio.timeout(30):
        while not await conn.fetchval(LIVE, f"%-{host.pid}-%"):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("seed", [1])
@pytest.mark.timeout(120)
async def test_each_key_is_carried_out_once_and_every_answer_for_it_is_the_same(
    database: str, tmp_path: Path, seed: int
) -> None:
    """IDEM-3, IDEM-4, IDEM-5, IDEM-6: 50 clients, 20 keys in waves, a kill in each wave, and retries.

    One more client in each wave insists on the host that is killed, so that each kill meets a run.
    """
    chance = random.Random(seed)
    answers: dict[str, list[Answer]] = {key: [] for key in KEYS}
    waves = [KEYS[start : start + len(KEYS) // KILLS] for start in range(0, len(KEYS), len(KEYS) // KILLS)]
    begun = [asyncio.Event() for _ in waves]
    conn = await asyncpg.connect(database)
    async with two_hosts(tmp_path, database) as hosts, aiohttp.ClientSession() as http:

        async def client() -> None:
            for wave, keys in enumerate(waves):
                await begun[wave].wait()
                key = chance.choice(keys)
                answers[key].append(await insist(http, lambda: chance.choice(hosts), key))

        async def faithful(host: Host, key: str) -> None:
            answers[key].append(await insist(http, lambda: host, key))

        async def reaper(mortal: Host) -> None:
            for wave, keys in zip(begun, waves, strict=True):
                tasks.create_task(faithful(mortal, keys[0]))
                await at_work(conn, mortal)
                wave.set()
                await asyncio.sleep(chance.uniform(0, 0.2))  # a run takes a quarter of a second at least
                await mortal.kill()
                await mortal.start()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reaper(hosts[1]))
            for _ in range(CLIENTS):
                tasks.create_task(client())
    told = {key: set(given) for key, given in answers.items() if given}
    assert {key: len(kinds) for key, kinds in told.items()} == dict.fromkeys(told, 1)
    charged = Counter(path.name.rpartition(".")[0] for path in (tmp_path / "world").iterdir())
    assert charged == Counter(told.keys())
    events = {row["what"]: row["count"] for row in await conn.fetch(KEY_EVENTS)}
    assert events == {"reserved": len(told), "completed": len(told)}
    assert await conn.fetchval(CONTINUED) > 0, "no kill met a run: this proved nothing"
    await conn.close()


LIVE = """
SELECT count(*) FROM stored_events AS begun
 WHERE topic = 'run.started.v1' AND convert_from(state, 'UTF8')::json ->> 'host' LIKE $1
   AND NOT EXISTS (
       SELECT FROM stored_events AS ended WHERE ended.originator_id = begun.originator_id
          AND ended.topic IN ('run.completed.v1', 'run.failed.v1', 'run.cancelled.v1'))
"""
CONTINUED = "SELECT count(*) FROM stored_events WHERE topic = 'run.continued.v1'"
KEY_EVENTS = """
SELECT split_part(topic, '.', 2) AS what, count(*) FROM stored_events
 WHERE topic LIKE 'idempotency-key.%' GROUP BY what
"""
