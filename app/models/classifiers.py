"""Who says what a failure is: the application first, then the optional rules, then the table (CLASS-1, 3)."""

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Literal, overload

import msgspec

from app.models.context_overflow import is_context_overflow
from domain.chain.policy import Verdict
from domain.errors import Rejected
from domain.failure import CallFailure, FailureClass, FailureKind, classify

log = logging.getLogger(__name__)

OptionalRule = Literal["context_overflow_to_larger", "payment_required_to_next"]

Classify = Callable[[str, CallFailure], FailureClass | str | None]

_OURS = frozenset({FailureKind.CIRCUIT_OPEN, FailureKind.INTERNAL})
"""What began here is no failure of the provider's to judge."""


class InvalidClassifier(Rejected):
    """The function cannot be a classifier. The message says what to change."""

    code = "invalid_classifier"


class Classifier(msgspec.Struct, frozen=True, kw_only=True):
    """A function of the host application. It is given the provider's name and the failure; None declines."""

    function: Classify
    provider: str | None = None
    """The one provider that it is asked about; None: all."""


@overload
def classifier(function: Classify, /) -> Classifier: ...
@overload
def classifier(*, provider: str | None = None) -> Callable[[Classify], Classifier]: ...
def classifier(
    function: Classify | None = None, /, *, provider: str | None = None
) -> Classifier | Callable[[Classify], Classifier]:
    """Register a function that is asked first what a failed model call is: `@classifier` or with a provider.

    It is given the provider's name and the CallFailure, and answers a FailureClass (or its value), or None to
    leave the decision to the next classifier and the built-in rules (CLASS-1). It must not wait for anything.
    """
    if function is None:
        return lambda decorated: _registered(decorated, provider)
    return _registered(function, provider)


def _registered(function: Classify, provider: str | None) -> Classifier:
    if inspect.iscoroutinefunction(function):
        raise InvalidClassifier(f"classifier {_name(function)}: it must be a plain function, not async")
    return Classifier(function=function, provider=provider)


class Classifiers:
    """A classifier can decide, not break: if it raises or talks nonsense, it is logged and the rest hold."""

    def __init__(
        self,
        registered: Iterable[Classifier] = (),
        rules: Iterable[OptionalRule] = (),
        *,
        retry_after_cap_s: float = 2.0,
    ) -> None:
        self._registered = tuple(registered)
        self._rules = frozenset(rules)
        self._retry_after_cap_s = retry_after_cap_s

    def judge(self, provider: str, failure: CallFailure) -> Verdict:
        """Total: every failure has a class."""
        if failure.kind not in _OURS:
            for registered in self._registered:
                if registered.provider in (None, provider):
                    decided = _asked(registered, provider, failure)
                    if decided is not None:
                        return Verdict(failure_class=decided)
        return self._by_rules(failure)

    def _by_rules(self, failure: CallFailure) -> Verdict:
        if failure.status == 402 and "payment_required_to_next" in self._rules:
            return Verdict(failure_class=FailureClass.UNAVAILABLE, payment_required=True)
        failure_class = classify(failure, retry_after_cap_s=self._retry_after_cap_s)
        asked_for = "context_overflow_to_larger" in self._rules and failure_class is FailureClass.INVALID
        return Verdict(failure_class=failure_class, larger_window=asked_for and is_context_overflow(failure))


def _asked(registered: Classifier, provider: str, failure: CallFailure) -> FailureClass | None:
    try:
        answer = registered.function(provider, failure)
        return None if answer is None else FailureClass(answer)
    except Exception:
        name = _name(registered.function)
        log.exception("classifier.failed", extra={"classifier": name, "provider": provider})
        return None


def _name(function: object) -> str:
    return getattr(function, "__qualname__", repr(function))
