"""Who says what a failure is (CLASS-1, CLASS-3)."""

import logging
from typing import Any

import pytest

from app.models.classifiers import Classifier, Classifiers, Classify, InvalidClassifier
from domain.chain.policy import Verdict
from domain.failure import CallFailure, FailureClass, FailureKind
from tracon import classifier

TEAPOT = CallFailure(kind=FailureKind.STATUS, status=418, message="I am a teapot")
UNPAID = CallFailure(kind=FailureKind.STATUS, status=402, code="billing_error", message="pay first")
TOO_LONG = CallFailure(
    kind=FailureKind.STATUS, status=400, code="context_length_exceeded", message="too long"
)
LIMITED = CallFailure(kind=FailureKind.STATUS, status=429, message="slow down", retry_after_s=5.0)
INVALID, UNAVAILABLE = FailureClass.INVALID, FailureClass.UNAVAILABLE


def of(failure_class: FailureClass) -> Verdict:
    return Verdict(failure_class=failure_class)


@classifier
def teapots(provider: str, failure: CallFailure) -> FailureClass | None:
    """Teapots are out of order; nothing else is known."""
    return FailureClass.UNAVAILABLE if failure.status == 418 else None


def test_without_a_classifier_the_table_holds() -> None:
    """CLASS-1."""
    assert Classifiers().judge("primary", TEAPOT) == of(INVALID)


def test_the_applications_classifier_is_asked_first() -> None:
    """CLASS-1."""
    assert Classifiers([teapots]).judge("primary", TEAPOT) == of(UNAVAILABLE)


def test_a_classifier_may_decline() -> None:
    """CLASS-1."""
    assert Classifiers([teapots]).judge("primary", UNPAID) == of(INVALID)


def test_a_classifier_may_answer_with_a_classs_name() -> None:
    named = classifier(lambda provider, failure: "transient")
    assert Classifiers([named]).judge("primary", TEAPOT) == of(FailureClass.TRANSIENT)


def test_the_first_that_does_not_decline_decides() -> None:
    auth = classifier(lambda provider, failure: FailureClass.AUTH)
    assert Classifiers([teapots, auth]).judge("primary", TEAPOT) == of(UNAVAILABLE)
    assert Classifiers([teapots, auth]).judge("primary", UNPAID) == of(FailureClass.AUTH)


def test_a_classifier_of_one_provider_is_not_asked_about_another() -> None:
    """CLASS-1: per provider, or for all."""

    @classifier(provider="kitchen")
    def kitchen(provider: str, failure: CallFailure) -> FailureClass:
        assert provider == "kitchen"
        return FailureClass.TRANSIENT

    assert Classifiers([kitchen]).judge("kitchen", TEAPOT) == of(FailureClass.TRANSIENT)
    assert Classifiers([kitchen]).judge("primary", TEAPOT) == of(INVALID)


def raises(provider: str, failure: CallFailure) -> FailureClass:
    raise KeyError("status")


def talks_nonsense(provider: str, failure: CallFailure) -> str:
    return "somewhat bad"


@pytest.mark.parametrize("broken", [raises, talks_nonsense])
def test_a_classifier_can_decide_but_not_break(broken: Classify, caplog: pytest.LogCaptureFixture) -> None:
    """CLASS-1: it is logged, and the rest hold."""
    classifiers = Classifiers([classifier(broken), teapots])
    with caplog.at_level(logging.ERROR):
        assert classifiers.judge("primary", TEAPOT) == of(UNAVAILABLE)
    (record,) = caplog.records
    assert record.message == "classifier.failed"
    assert vars(record)["classifier"] in ("raises", "talks_nonsense")


@pytest.mark.parametrize("kind", [FailureKind.CIRCUIT_OPEN, FailureKind.INTERNAL])
def test_what_began_here_is_not_for_a_classifier_to_judge(kind: FailureKind) -> None:
    """CLASS: an open circuit stays `unavailable`, what is internal stays that."""
    asked = classifier(lambda provider, failure: pytest.fail("it was asked"))
    verdict = Classifiers([asked]).judge("primary", CallFailure(kind=kind, message="ours"))
    assert verdict.failure_class in (UNAVAILABLE, FailureClass.INTERNAL)


def test_a_classifier_must_not_wait_for_anything() -> None:
    async def slow(provider: str, failure: CallFailure) -> None:
        return None

    function: Any = slow
    with pytest.raises(InvalidClassifier, match="slow: it must be a plain function"):
        classifier(function)
    with pytest.raises(InvalidClassifier):
        classifier(provider="primary")(function)


def test_a_registered_classifier_is_found_by_its_type() -> None:
    assert isinstance(teapots, Classifier)
    assert isinstance(classifier(provider="p")(raises), Classifier)


@pytest.mark.parametrize(
    ("cap_s", "failure_class"), [(2.0, UNAVAILABLE), (5.0, FailureClass.TRANSIENT)], ids=["over", "within"]
)
def test_a_wait_is_honoured_up_to_its_cap(cap_s: float, failure_class: FailureClass) -> None:
    """CLASS: `chain.retry_after_cap`."""
    assert Classifiers(retry_after_cap_s=cap_s).judge("primary", LIMITED) == of(failure_class)


class TestOptionalRules:
    """CLASS-3: switched off unless they are named."""

    def test_a_provider_that_wants_to_be_paid(self) -> None:
        """C18, C19."""
        assert Classifiers().judge("primary", UNPAID) == of(INVALID)
        paid = Classifiers(rules=["payment_required_to_next"]).judge("primary", UNPAID)
        assert paid == Verdict(failure_class=UNAVAILABLE, payment_required=True)

    def test_a_request_that_is_too_long(self) -> None:
        assert Classifiers().judge("primary", TOO_LONG) == of(INVALID)
        larger = Classifiers(rules=["context_overflow_to_larger"])
        assert larger.judge("primary", TOO_LONG) == Verdict(failure_class=INVALID, larger_window=True)
        assert larger.judge("primary", TEAPOT) == of(INVALID)

    @pytest.mark.parametrize(
        ("status", "told", "overflow"),
        [
            (400, "it answered 400 (invalid_request_error): prompt is too long: 9 tokens > 8 maximum", True),
            (400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", True),
            (400, "This model's maximum context length is 8 tokens.", True),
            (413, "Prompt is too long", True),
            (400, "temperature: Input should be at most 1", False),
            (500, "prompt is too long", False),
            (413, "Request exceeds the maximum size", False),
        ],
    )
    def test_wires_without_a_code_for_it_say_it_in_words(
        self, status: int, told: str, overflow: bool
    ) -> None:
        failure = CallFailure(kind=FailureKind.STATUS, status=status, message=told)
        verdict = Classifiers(rules=["context_overflow_to_larger"]).judge("primary", failure)
        assert verdict.larger_window == overflow

    def test_a_classifiers_word_stands_above_a_rule(self) -> None:
        auth = classifier(lambda provider, failure: FailureClass.AUTH)
        both = Classifiers([auth], ["payment_required_to_next", "context_overflow_to_larger"])
        assert both.judge("primary", UNPAID) == of(FailureClass.AUTH)
        assert both.judge("primary", TOO_LONG) == of(FailureClass.AUTH)
