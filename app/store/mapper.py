"""Events to rows and back, for us and for the `eventsourcing` library alike."""

import base64
import binascii
import zlib
from typing import get_args
from uuid import UUID

import asyncpg
import msgspec
from eventsourcing.compressor import ZlibCompressor
from eventsourcing.cryptography import AESCipher
from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import JSONTranscoder, Mapper, StoredEvent
from eventsourcing.utils import Environment, register_topic

from domain.codec import Codec, UnreadableEvent
from domain.events import AnyEvent, Event, Recorded, topic_of
from domain.ids import StreamId, Version


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the library's terms: it names its stream and its place there."""

    originator_id: UUID
    originator_version: int
    event: Event


class EventMapper(Mapper[UUID]):
    """Encode, compress, encrypt; and the reverse.

    `compress` decides about new rows only: whether a row is compressed shows in its first byte. A `key`
    (16, 24 or 32 bytes, or as text their base64) has to be in force from the first event on, for a row that
    is not encrypted under it is refused.
    """

    def __init__(
        self, codec: Codec | None = None, *, compress: bool = False, key: bytes | str | None = None
    ) -> None:
        super().__init__(
            JSONTranscoder(),  # the library asks for one; the codec does its work
            compressor=ZlibCompressor() if compress else None,
            cipher=None if key is None else _cipher(key),
        )
        self._codec = codec or Codec()
        for event_type in get_args(AnyEvent):
            # The library would otherwise import whatever module a row names as its topic.
            register_topic(topic_of(event_type), event_type)

    def seal(self, event: Event) -> tuple[str, bytes]:
        """The topic and the payload as they are stored."""
        topic, state = self._codec.encode(event)
        if self.compressor:
            state = self.compressor.compress(state)
        if self.cipher:
            state = self.cipher.encrypt(state)
        return topic, state

    def open(self, topic: str, state: bytes) -> Event:
        """Raise UnreadableEvent or UnknownTopic, which must stop the reader."""
        if self.cipher:
            try:
                state = self.cipher.decrypt(state)
            except ValueError as error:
                raise UnreadableEvent(
                    f"an event of topic {topic!r} does not decrypt: it was written without a key, "
                    "or with another one than this host has"
                ) from error
        if not state.startswith(b"{"):
            state = _decompressed(topic, state)
        return self._codec.decode(topic, state)

    def recorded(self, row: asyncpg.Record) -> Recorded[Event]:
        """A row of `stored_events`. Raise UnreadableEvent, naming its place, or UnknownTopic."""
        try:
            event = self.open(row["topic"], row["state"])
        except UnreadableEvent as error:
            raise UnreadableEvent(
                f"event {row['originator_version']} of stream {row['originator_id']}: {error}"
            ) from error
        return Recorded(
            stream_id=StreamId(row["originator_id"]),
            sequence=Version(row["originator_version"]),
            position=row["notification_id"],
            at=row["recorded_at"],
            tenant=row["tenant_id"],
            event=event,
        )

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        if not isinstance(domain_event, Fact):
            raise TypeError(f"not a fact of Tracon: {type(domain_event).__name__}")
        topic, state = self.seal(domain_event.event)
        return StoredEvent(domain_event.originator_id, domain_event.originator_version, topic, state)

    def to_domain_event(self, stored_event: StoredEvent) -> Fact:
        originator_id = stored_event.originator_id
        return Fact(
            originator_id=originator_id if isinstance(originator_id, UUID) else UUID(originator_id),
            originator_version=stored_event.originator_version,
            event=self.open(stored_event.topic, stored_event.state),
        )


def _cipher(key: bytes | str) -> AESCipher:
    size = len(raw := _raw(key))
    if size not in AESCipher.KEY_SIZES:
        raise ValueError(f"an encryption key has 16, 24 or 32 bytes, not {size}")
    encoded = base64.b64encode(raw).decode()
    return AESCipher(Environment(env={AESCipher.CIPHER_KEY: encoded}))


def _raw(key: bytes | str) -> bytes:
    if isinstance(key, bytes):
        return key
    try:
        return base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("the encryption key is not base64") from error


def _decompressed(topic: str, state: bytes) -> bytes:
    try:
        return zlib.decompress(state)
    except zlib.error as error:
        raise UnreadableEvent(
            f"an event of topic {topic!r} is neither JSON nor compressed JSON: it is damaged, or encrypted "
            "while this host has no key"
        ) from error
