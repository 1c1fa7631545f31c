"""Fresh identifiers: runs, and this host."""

import os
import socket
from uuid import uuid4

from uuid_utils.compat import uuid7

from domain.ids import RunId


def new_run_id() -> RunId:
    """Ids rise with time, so that a run's rows land beside their neighbours in every index."""
    return RunId(uuid7())


def new_host_id() -> str:
    """Machine, process, and something that a restarted process with the same number does not share."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
