"""Why a response or a conversation cannot be had, or not be gone on from."""

from collections.abc import Mapping
from typing import ClassVar

from app.http.errors import Refused
from domain.errors import Conflict, NotFound
from domain.ids import RunId
from domain.run import RunStatus


class NoSuchResponse(NotFound):
    """No response of this tenant has this id, or it was not to be stored."""

    code = "response_not_found"

    def __init__(self, text: str) -> None:
        super().__init__(f"there is no response {text!r}")


class PreviousNotFound(NotFound):
    """The response to go on from is not there. Send its conversation along instead."""

    code = "previous_response_not_found"
    field: ClassVar[str] = "previous_response_id"

    def __init__(self, text: str) -> None:
        super().__init__(f"there is no response {text!r} to go on from")


class CannotGoOn(Conflict):
    """The previous response has no end to go on from: it is still under way, or it failed."""

    code = "previous_response_not_completed"
    field: ClassVar[str] = "previous_response_id"

    def __init__(self, text: str, status: RunStatus) -> None:
        super().__init__(f"response {text!r} cannot be gone on from: its run is {status}")


class RunGoesOn(Refused):
    """Nobody can wait here any longer for a run that was begun. Asked again, it would be begun again."""

    status = 503
    code = "run_goes_on"
    headers: Mapping[str, str] = {"X-Should-Retry": "false"}

    def __init__(self, run_id: RunId, why: str) -> None:
        super().__init__(f"{why} The request was begun as run {run_id}, which goes on.")


class NoSuchConversation(NotFound):
    """No conversation of this tenant has this id."""

    code = "conversation_not_found"
    field: ClassVar[str] = "conversation"

    def __init__(self, text: str) -> None:
        super().__init__(f"there is no conversation {text!r}")
