"""Who says what a failure is: the application first, then the optional rules, then the table (CLASS-1, 3)."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from domain.failure import CallFailure, FailureClass, FailureKind, classify

log = logging.getLogger(__name__)

OptionalRule = Literal["context_overflow_to_larger", "payment_required_to_next"]

Classify = Callable[[str, CallFailure], FailureClass | str | None]

CONTEXT_OVERFLOW = "context_length_exceeded"
"""The code that adapters report for a request that does not fit the model's window."""


class Classifier(msgspec.Struct, frozen=True, kw_only=True):
    """A function of the host application. It is given the provider's name and the failure; None declines."""

    function: Classify
    provider: str | None = None
    """The one provider that it is asked about; None: all."""


def classifier(function: Classify | None = None, *, provider: str | None = None) -> Any:
    """Register a function that is asked first what a failed model call is: `@classifier` or with a provider.

    It is given the provider's name and the CallFailure, and answers a FailureClass (or its value), or None to
    leave the decision to the built-in rules (CLASS-1).
    """
    if function is None:
        return lambda decorated: Classifier(function=decorated, provider=provider)
    return Classifier(function=function, provider=provider)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a failure is. `larger_window`: a link with a larger context window may serve the call."""

    failure_class: FailureClass
    larger_window: bool = False


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
        for classifier in self._registered:
            if classifier.provider in (None, provider):
                decided = _asked(classifier, provider, failure)
                if decided is not None:
                    return Verdict(failure_class=decided)
        return self._by_rules(failure)

    def _by_rules(self, failure: CallFailure) -> Verdict:
        if failure.status == 402 and "payment_required_to_next" in self._rules:
            return Verdict(failure_class=FailureClass.UNAVAILABLE)
        failure_class = classify(failure, retry_after_cap_s=self._retry_after_cap_s)
        overflow = failure.code == CONTEXT_OVERFLOW and failure_class is FailureClass.INVALID
        larger = overflow and "context_overflow_to_larger" in self._rules
        return Verdict(failure_class=failure_class, larger_window=larger)


def _asked(classifier: Classifier, provider: str, failure: CallFailure) -> FailureClass | None:
    if failure.kind is FailureKind.CIRCUIT_OPEN:
        return None  # our own refusal is no failure of the provider's to judge
    try:
        answer = classifier.function(provider, failure)
        return None if answer is None else FailureClass(answer)
    except Exception:
        name = getattr(classifier.function, "__qualname__", repr(classifier.function))
        log.exception("classifier.failed", extra={"classifier": name, "provider": provider})
        return None
