"""How appends are laid out in a batch, and which of them it takes."""

import random
from collections.abc import Sequence
from uuid import UUID

from app.store.batch import Append, Batch
from app.store.change import Change
from app.store.queue import AppendQueue
from domain.ids import StreamId
from tests.store.samples import change

STREAMS = [StreamId(UUID(int=number)) for number in range(6)]


def append(*changes: Change) -> Append:
    return Append(changes, [[("t", b"{}") for _ in one.events] for one in changes], deadline=0.0)


async def test_rows_go_in_one_order_however_the_appends_came() -> None:
    """The promise that keeps hosts with overlapping batches from deadlocking."""
    appends = [
        append(change(STREAMS[4], 0, "a", "b"), change(STREAMS[0], 7, "c")),
        append(change(STREAMS[3], 2, "d"), change(STREAMS[5], 0, "e")),
        append(change(STREAMS[1], 0, "f")),
    ]
    for seed in range(5):
        random.Random(seed).shuffle(appends)
        streams, versions, *_ = Batch(appends).columns()
        rows = list(zip(streams, versions, strict=True))
        assert rows == sorted(rows)
        assert len(rows) == 6


async def test_a_stream_is_in_a_batch_once_and_nobody_passes_who_waits_for_it() -> None:
    """EVENT-3: of two appends of one stream the second is judged only when the first is decided."""
    queue = AppendQueue()
    first = append(change(STREAMS[0], 0, "a"))
    second = append(change(STREAMS[0], 1, "b"), change(STREAMS[1], 0, "b"))
    third = append(change(STREAMS[1], 1, "c"))
    other = append(change(STREAMS[2], 0, "d"))
    for one in (first, second, third, other):
        queue.put(one)
    assert [queue.take(), queue.take(), queue.take(), queue.take()] == [[first, other], [second], [third], []]


async def test_a_batch_has_a_size_in_events_and_in_bytes() -> None:
    small = AppendQueue(max_events=3)
    large = AppendQueue(max_bytes=4)
    appends = [append(change(stream, 0, "x")) for stream in STREAMS]
    for one in appends:
        small.put(one)
        large.put(one)
    assert sizes(small) == [3, 3]
    assert sizes(large) == [2, 2, 2]


async def test_whoever_gave_up_is_left_out() -> None:
    queue = AppendQueue()
    gone, here = append(change(STREAMS[0], 0, "a")), append(change(STREAMS[1], 0, "b"))
    queue.put(gone)
    queue.put(here)
    gone.outcome.cancel()
    assert queue.take() == [here]


def sizes(queue: AppendQueue) -> Sequence[int]:
    taken = []
    while batch := queue.take():
        taken.append(len(batch))
    return taken
