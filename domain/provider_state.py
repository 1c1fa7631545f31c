"""What a look at a provider shows, apart from any call."""

from enum import StrEnum

from domain.failure import CallFailure, FailureClass, classify


class ProviderState(StrEnum):
    UP = "up"
    """It answers."""
    LIMITED = "limited"
    """It answers that too much is asked of it."""
    REFUSED = "refused"
    """It answers, and refuses the key."""
    DOWN = "down"
    """It does not answer, or not as it should."""


def state_shown_by(failure: CallFailure) -> ProviderState:
    """What it is that the provider did not give its list of models.

    Plenty of servers have no such list; a request that is refused as wrong was read all the same.
    """
    if failure.status == 429:
        return ProviderState.LIMITED
    match classify(failure):
        case FailureClass.AUTH:
            return ProviderState.REFUSED
        case FailureClass.INVALID:
            return ProviderState.UP
        case _:
            return ProviderState.DOWN
