"""Events to bytes and back. Old topics stay readable for ever (EVENT-9)."""

from collections.abc import Callable, Mapping
from typing import Any, get_args

import msgspec

from domain.events import AnyEvent, Event, topic_of

Upcast = Callable[[Any], Event]


class UnknownTopic(Exception):
    """The log holds a topic that this build does not know. Run a newer build; nothing may be skipped."""


class UnreadableEvent(Exception):
    """The bytes under a known topic do not decode. The log or its key is damaged; restore, do not skip."""


class Codec:
    """A closed registry of topics. `retired` maps old event types to what lifts them to today's types."""

    def __init__(
        self,
        current: tuple[type[Event], ...] = get_args(AnyEvent),
        retired: Mapping[type[Event], Upcast] | None = None,
    ) -> None:
        self._encoder = msgspec.json.Encoder(decimal_format="string")
        self._readers: dict[str, tuple[msgspec.json.Decoder[Any], Upcast | None]] = {}
        for event_type in current:
            self._register(event_type, None)
        for event_type, upcast in (retired or {}).items():
            self._register(event_type, upcast)

    def _register(self, event_type: type[Event], upcast: Upcast | None) -> None:
        topic = topic_of(event_type)
        if topic in self._readers:
            raise ValueError(f"topic {topic!r} is registered twice")
        self._readers[topic] = (msgspec.json.Decoder(event_type), upcast)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(self._readers)

    def encode(self, event: Event) -> tuple[str, bytes]:
        """The topic and the JSON payload."""
        return topic_of(event), self._encoder.encode(event)

    def decode(self, topic: str, payload: bytes) -> Event:
        """Raise UnknownTopic or UnreadableEvent; both must stop the reader, never be skipped."""
        reader = self._readers.get(topic)
        if reader is None:
            raise UnknownTopic(f"topic {topic!r} is not known to this build")
        decoder, upcast = reader
        try:
            event = decoder.decode(payload)
        except msgspec.MsgspecError as error:
            raise UnreadableEvent(f"an event of topic {topic!r} does not decode: {error}") from error
        return upcast(event) if upcast else event
