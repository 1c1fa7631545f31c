"""The families of errors. A family decides how the world reacts; the code is stable and machine-readable."""

from typing import ClassVar


class TraconError(Exception):
    """Base of every error that Tracon raises on purpose. The message is a sentence a caller may be shown."""

    code: ClassVar[str] = "error"


class Rejected(TraconError):
    """The request itself is wrong. Correct it; sending it again changes nothing."""

    code = "rejected"


class NotFound(TraconError):
    """No such thing for this tenant. Check the id; somebody else's thing answers the same."""

    code = "not_found"


class Conflict(TraconError):
    """Right in itself, but not in the present state. Read the state, decide again."""

    code = "conflict"


class Unavailable(TraconError):
    """Nothing was done. Try again after `retry_after_s` seconds."""

    code = "unavailable"

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
