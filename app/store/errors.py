"""What an append can come back with besides success."""

from domain.errors import Conflict
from domain.ids import StreamId


class VersionConflict(Conflict):
    """Somebody appended after we read, or the version skips one. Reload, decide again."""

    code = "version_conflict"

    def __init__(self, *stream_ids: StreamId) -> None:
        super().__init__(f"moved past the expected version: {', '.join(map(str, stream_ids))}")
        self.stream_ids = stream_ids


class Fenced(Conflict):
    """Somebody else moved the stream that we owned. Stop at once, have no further effect (EVENT-3)."""

    code = "fenced"

    def __init__(self, stream_id: StreamId) -> None:
        super().__init__(f"stream {stream_id} is no longer ours to write")
        self.stream_id = stream_id
