"""The models of the upstream: each name stands for one way to answer. The modules beside this one fill it."""

from collections.abc import Awaitable, Callable

from tests.upstream.exchange import Exchange

Behaviour = Callable[[Exchange], Awaitable[None]]
BEHAVIOURS: dict[str, Behaviour] = {}


def model(name: str) -> Callable[[Behaviour], Behaviour]:
    """Register what the model of this name does."""

    def register(behaviour: Behaviour) -> Behaviour:
        BEHAVIOURS[name] = behaviour
        return behaviour

    return register
