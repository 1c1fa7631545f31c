"""Server-sent events out of the bytes of a response, however the network cut them."""

import msgspec

MAX_EVENT_BYTES = 8 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its name (empty unless the server gave one) and its data lines, joined by newlines."""

    name: bytes
    data: bytes


class SseOverflow(Exception):
    """A line or an event is longer than anybody may make us hold. The stream is of no more use."""


class SseParser:
    """Feed it bytes, get whole events. Lines end in LF, CRLF or CR; comments and ids are dropped."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._tail: list[bytes] = []
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete. Raise SseOverflow when too much is pending."""
        lines = self._lf_only(data).split(b"\n")
        self._size += len(data)
        if len(lines) == 1:
            self._tail.append(lines[0])
            events: list[SseEvent] = []
        else:
            self._tail.append(lines[0])
            lines[0] = b"".join(self._tail)
            self._tail = [lines.pop()]
            events = self._read(lines)
        if self._size > self._max_bytes:
            raise SseOverflow(f"an event of more than {self._max_bytes} bytes")
        return events

    def close(self) -> list[SseEvent]:
        """The stream is over: an event whose last blank line never came counts as it is."""
        return self._read([b"".join(self._tail), b""])

    def _lf_only(self, data: bytes) -> bytes:
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _read(self, lines: list[bytes]) -> list[SseEvent]:
        if self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BOM)
        events = []
        for line in lines:
            if line:
                self._read_field(line)
            elif self._data:
                events.append(SseEvent(self._name, b"\n".join(self._data)))
                self._name, self._data = b"", []
            else:
                self._name = b""
        self._size = sum(map(len, self._tail)) + sum(map(len, self._data))
        return events

    def _read_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.removeprefix(b" ")
