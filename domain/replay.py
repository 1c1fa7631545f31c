"""A replay: a run of what another run was given, to see whether it comes to the same."""

from enum import StrEnum

import msgspec

from domain.ids import RunId


class ReplayTools(StrEnum):
    """What the replayed run's tool calls come to."""

    RECORDED = "recorded"
    """The results that the other run recorded. A call that it did not make is refused."""
    NONE = "none"
    """Every call is refused."""
    LIVE = "live"
    """They run, and have their effects again."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """Which run is replayed, and what its tool calls come to."""

    run_id: RunId
    tools: ReplayTools
