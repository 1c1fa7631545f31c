"""What the runs before a run have used, as their streams have it (BUDGET-7)."""

from collections.abc import Iterable, Sequence

from domain import events as e
from domain.budget import Charge, Spent, charge_of
from domain.failure import ErrorClass
from domain.ids import RunId

LONGEST_CHAIN = 128
"""How many runs may continue one another, the newest included."""

History = Sequence[e.Recorded[e.RunEvent]]


def children_of(history: History) -> tuple[RunId, ...]:
    """The runs that were started directly below this one."""
    return tuple(one.event.run_id for one in history if isinstance(one.event, e.ChildRunStarted))


def spent_by(chain: Iterable[History], below: Iterable[History]) -> Spent:
    """What a chain of runs has used, and everything `below` them. Children run while their parents do."""
    links = tuple(chain)
    everything = (*links, *below)
    return Spent(
        charge=sum((charge_of(one.event) for history in everything for one in history), Charge()),
        runs=sum(len(children_of(history)) for history in everything),
        executing_s=sum(executing_s(history) for history in links),
    )


def executing_s(history: History) -> float:
    """For how long the run was at work: from its beginning to its end.

    A run that others closed, after its host was gone, was at work until the last thing that it wrote itself:
    the time the host was down is not charged.
    """
    began = next((one.at for one in history if isinstance(one.event, e.RunStarted)), None)
    if began is None:
        return 0.0
    own = [one for one in history if not isinstance(one.event, e.AfterEnd)]
    last = own[-1]
    if _was_closed_by_others(last.event):
        last = own[-2]
    return max(0.0, (last.at - began).total_seconds())


def _was_closed_by_others(end: e.RunEvent) -> bool:
    return isinstance(end, e.RunFailed) and end.error_class is ErrorClass.INFRASTRUCTURE
