"""Inbound triggers: other systems ask for runs in requests that they sign (JOB-2)."""

import os
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from app.jobs.signature import BadSecret, is_signed, secrets_in
from app.jobs.submission import SUBMISSION_PATIENCE_S, queued_run
from app.metrics import Metrics
from app.quotas.quotas import Asked, Quotas
from app.settings import TriggerSettings
from app.store.change import Change
from app.store.event_log import EventLog, VersionConflict
from domain.errors import Rejected
from domain.ids import RunId, delivered_run
from domain.messages import UserMessage
from domain.queueing import QueueSpec, TriggerDelivery
from domain.quota import QuotaExceeded

_PLACEHOLDER = "{{ body }}"
_NONE = "none"


class TriggerMisconfigured(Rejected):
    """A trigger's settings cannot be used on this machine. Correct what the message names, start again."""

    code = "trigger_misconfigured"


class EmptyMessage(Rejected):
    """There is nothing in the body to tell the agent. Send some text in UTF-8."""

    code = "empty_message"


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An inbound request: what its headers say, and its body."""

    id: str
    timestamp: int
    signatures: str
    body: bytes


class Accepted(NamedTuple):
    run_id: RunId
    repeated: bool
    """Whether the delivery had come before: then this is the run that it had then."""


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """A trigger of the settings, with its secrets."""

    name: str
    settings: TriggerSettings
    secrets: tuple[bytes, ...]


def triggers_of(
    settings: Mapping[str, TriggerSettings], environ: Mapping[str, str] = os.environ
) -> dict[str, Trigger]:
    """By name. Raise TriggerMisconfigured, naming the place of a secret that is missing."""
    return {
        name: Trigger(name=name, settings=one, secrets=_secrets(name, one, environ))
        for name, one in settings.items()
    }


class Triggers:
    """Takes deliveries. A run's id follows from its delivery's, so the log lets a delivery have one run."""

    def __init__(
        self,
        triggers: Mapping[str, Trigger],
        log: EventLog,
        now: Callable[[], Awaitable[datetime]],
        metrics: Metrics,
        quotas: Quotas,
        *,
        max_attempts: int,
    ) -> None:
        self._triggers = triggers
        self._log = log
        self._now = now
        self._metrics = metrics
        self._quotas = quotas
        self._max_attempts = max_attempts

    async def accept(self, name: str, delivery: Delivery) -> Accepted | None:
        """Queue the delivery's run. None where nobody who knows the secret sent it, or not lately.

        Raise EmptyMessage, QuotaExceeded, or StoreUnavailable, after which the sender may just send it again.
        """
        trigger = self._triggers.get(name)
        if trigger is None or not await self._is_genuine(trigger, delivery):
            self._count(trigger, "refused")
            return None
        run_id = delivered_run(trigger.settings.tenant, name, delivery.id)
        run = queued_run(
            run_id,
            trigger.settings.tenant,
            trigger.settings.agent,
            (UserMessage(content=_message(trigger.settings, delivery.body)),),
            self._queue(trigger, delivery),
            parameters=trigger.settings.parameters,
            session_id=trigger.settings.session_id,
        )
        repeated = not await self._kept(run, Asked(run_id, trigger.settings.agent))
        self._count(trigger, "repeated" if repeated else "queued")
        return Accepted(run_id, repeated=repeated)

    async def _kept(self, run: Change, asked: Asked) -> bool:
        """Keep the run. False where an earlier sending of the delivery has it."""
        try:
            async with self._quotas.admitted(run.tenant, asked):
                try:
                    await self._log.append(run, patience_s=SUBMISSION_PATIENCE_S)
                except VersionConflict:
                    return False
        except QuotaExceeded:
            if await self._log.read_last(run.stream_id) is None:
                raise
            return False
        return True

    async def _is_genuine(self, trigger: Trigger, delivery: Delivery) -> bool:
        """Nothing is asked of the store for who does not know the secret."""
        signed = is_signed(
            trigger.secrets, delivery.id, delivery.timestamp, delivery.body, delivery.signatures
        )
        if not signed:
            return False
        age_s = (await self._now()).timestamp() - delivery.timestamp
        return abs(age_s) <= trigger.settings.tolerance

    def _queue(self, trigger: Trigger, delivery: Delivery) -> QueueSpec:
        return QueueSpec(
            lane=trigger.settings.lane,
            priority=trigger.settings.priority,
            max_attempts=trigger.settings.max_attempts or self._max_attempts,
            source=TriggerDelivery(trigger=trigger.name, delivery=delivery.id),
        )

    def _count(self, trigger: Trigger | None, outcome: str) -> None:
        self._metrics.trigger_deliveries.labels(trigger.name if trigger else _NONE, outcome).inc()


def _message(settings: TriggerSettings, body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise EmptyMessage("the body is not text in UTF-8") from None
    message = settings.message.replace(_PLACEHOLDER, text)
    if not message.strip():
        raise EmptyMessage("the body is empty")
    return message


def _secrets(name: str, settings: TriggerSettings, environ: Mapping[str, str]) -> tuple[bytes, ...]:
    try:
        if settings.secret_env is not None:
            place = f"the environment variable {settings.secret_env}"
            return secrets_in(environ.get(settings.secret_env, ""))
        place = f"the file {settings.secret_file}"
        return secrets_in(Path(settings.secret_file or "").read_text("utf-8"))
    except BadSecret as error:
        raise TriggerMisconfigured(f"trigger {name!r}: its secret in {place} {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise TriggerMisconfigured(f"trigger {name!r}: {place} cannot be read: {reason}") from error
