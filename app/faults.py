"""Named fault points: places where a process can be made to die, to rehearse a crash.

`TRACON_FAULT=tool.body.after:2` kills this process (SIGKILL, no clean-up) when it passes that point again.
Unarmed, a point costs one comparison. The names are a closed set, so that a misspelt rehearsal is refused.
"""

import os
import signal
from typing import Literal, get_args

FaultPoint = Literal[
    "append.before",
    "append.after",
    "model.call.before",
    "model.call.after",
    "tool.body.before",
    "tool.body.after",
    "node.body.before",
    "node.body.after",
    "run.end.before",
    "run.end.after",
    "approval.decide.before",
    "approval.decide.after",
    "heartbeat.before",
    "heartbeat.after",
    "lease.renew.before",
    "lease.renew.after",
]


class _Armed:
    point: str | None = None
    remaining: int = 0


def arm(spec: str) -> None:
    """Arm `POINT` or `POINT:NTH` (from 1). Raise ValueError for an unknown point or a bad count."""
    point, _, nth = spec.partition(":")
    if point not in get_args(FaultPoint):
        raise ValueError(f"unknown fault point {point!r}; known: {', '.join(get_args(FaultPoint))}")
    if not (nth or "1").isdigit() or int(nth or 1) < 1:
        raise ValueError(f"fault point {spec!r}: the count after the colon must be a number from 1")
    _Armed.point, _Armed.remaining = point, int(nth or 1)


def fault_point(point: FaultPoint) -> None:
    """Die here if this point is armed and its turn has come."""
    if _Armed.point != point:
        return
    _Armed.remaining -= 1
    if _Armed.remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
