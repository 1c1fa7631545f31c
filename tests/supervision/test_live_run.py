"""A run in the hands of its owner: how long it still has."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from app.identity import new_run_id
from app.store.stream_writer import StreamWriter
from app.supervision import live_run
from app.supervision.live_run import LiveRun
from domain.ids import Version
from domain.run import Run
from domain.session import Session


def no_pen(version: Version) -> StreamWriter:
    raise AssertionError("nothing is written here")


def test_setting_the_time_of_day_neither_takes_a_run_its_time_nor_gives_it_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """RECON-3: what is left is what a retry or a wait of the run may take (CHAIN-2)."""

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Tomorrow":
            return cast(Tomorrow, datetime.now(UTC) + timedelta(days=1))

    live = LiveRun(Run(id=new_run_id()), Session(), no_pen, 30.0)
    before = live.deadline
    monkeypatch.setattr(live_run, "datetime", Tomorrow)
    assert 0 < live.remaining_s <= 30
    assert live.deadline - before > timedelta(hours=23)
