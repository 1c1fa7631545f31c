"""Requests with a key, and what was done for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from app.idempotency.keys import change_by
from app.identity import new_run_id
from app.supervision.run_service import StartRequest
from domain.idempotency import Key, KeyedRequest, Reserve
from domain.ids import DEFAULT_TENANT, RunId
from domain.messages import UserMessage
from tests.http.client import Client

BODY = b'{"message": "hi"}'


@dataclass(frozen=True)
class Raw:
    """An answer with every byte of its body."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def kept(self) -> tuple[int, str, str | None, str | None, bytes]:
        """All that a repetition must have in common with it."""
        headers = self.headers
        return (
            self.status,
            headers["Content-Type"],
            headers.get("Location"),
            headers.get("Preference-Applied"),
            self.body,
        )

    @property
    def replayed(self) -> bool:
        return "Idempotency-Replayed" in self.headers


def path_to(agent: str) -> str:
    return f"/tracon/api/agents/{agent}/run"


async def keyed(
    host: Client,
    key: str = "k",
    agent: str = "echo",
    body: bytes = BODY,
    headers: Mapping[str, str] | None = None,
) -> Raw:
    """Run an agent with a key."""
    return await sent(host, path_to(agent), body, key, headers)


async def sent(
    host: Client, path: str, body: bytes, key: str, headers: Mapping[str, str] | None = None
) -> Raw:
    """A POST with a key."""
    told = {"Content-Type": "application/json", "Idempotency-Key": key, **(headers or {})}
    async with host.session.post(path, data=body, headers=told) as response:
        return Raw(response.status, response.headers, await response.read())


async def runs_of(host: Client, **headers: str) -> list[Any]:
    """Every run there is, as the views have it once they have everything."""
    await host.views_show("runs")
    runs: list[Any] = (await host.get("/tracon/api/runs", **headers)).body["runs"]
    return runs


async def begun(
    host: Client, key: str = "k", agent: str = "echo", body: bytes = BODY, session_id: str | None = None
) -> RunId:
    """A submission that goes on while nobody is left who would settle its key when its run ends."""
    request = KeyedRequest.of(key, "POST", path_to(agent), body)
    run_id = new_run_id()
    reservation = change_by(Key(), DEFAULT_TENANT, key, Reserve(request=request, run_id=run_id, form="run"))
    assert reservation is not None
    return await host.host.services.runs.start(
        StartRequest(
            tenant=DEFAULT_TENANT,
            agent=agent,
            messages=(UserMessage(content="hi"),),
            session_id=session_id,
            run_id=run_id,
            alongside=(reservation,),
        )
    )
