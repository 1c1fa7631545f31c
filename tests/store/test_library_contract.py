"""The suites that the `eventsourcing` library ships for its recorders, run against the event log."""

from collections.abc import Sequence
from typing import Any
from unittest import TestCase

import pytest
from eventsourcing.persistence import StoredEvent
from eventsourcing.tests import persistence as contract

from tests.store.library import Recorder


class _Ours(TestCase):
    group_commit = True
    strict = False
    recorder: type[Recorder] = Recorder

    @pytest.fixture(autouse=True)
    def _on(self, database: str) -> None:
        self._dsn = database

    def create_recorder(self) -> Any:
        recorder = self.recorder(self._dsn, group_commit=self.group_commit, strict=self.strict)
        self.addCleanup(recorder.close)
        return recorder


class _ReturnsNothing(Recorder):
    """An aggregate recorder knows no notifications."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **options: Any) -> None:
        super().insert_events(stored_events, **options)


class TestAggregateRecorder(_Ours, contract.AggregateRecorderTestCase):
    recorder = _ReturnsNothing


class TestApplicationRecorder(_Ours, contract.ApplicationRecorderTestCase[Any]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestTrackingRecorder(_Ours, contract.TrackingRecorderTestCase):
    pass


class TestProcessRecorder(_Ours, contract.ProcessRecorderTestCase):
    pass


class TestPositionsDoNotInterleaveWhenStrict(_Ours, contract.NonInterleavingNotificationIDsBaseCase):
    strict = True


class TestAggregateRecorderByFunction(TestAggregateRecorder):
    group_commit = False


class TestApplicationRecorderByFunction(TestApplicationRecorder):
    group_commit = False


class TestPositionsDoNotInterleaveWhenStrictByFunction(TestPositionsDoNotInterleaveWhenStrict):
    group_commit = False
