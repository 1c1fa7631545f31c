"""Retry and fallback, case by case (CHAIN)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.agent import Link
from domain.chain.policy import (
    RETRY_JITTER_S,
    RETRY_WAIT_S,
    ChainLink,
    ChainState,
    FallbackMode,
    LeftLink,
    NextLink,
    Retry,
    Stop,
    Verdict,
    after,
    answered,
    begin,
    is_last,
)
from domain.failure import CallFailure, ErrorClass, FailureClass, FailureKind, RunError

ONE, TWO, THREE = (Link(provider=name, model="m") for name in ("one", "two", "three"))
RETRIED = [FailureClass.TRANSIENT, FailureClass.EMPTY, FailureClass.ERROR_PRE]
ENDING = [FailureClass.AUTH, FailureClass.INVALID, FailureClass.CONTENT_FILTERED, FailureClass.CANCELLED]
ENDING.append(FailureClass.INTERNAL)
OVERFLOW = Verdict(failure_class=FailureClass.INVALID, larger_window=True)


def of(failure_class: FailureClass) -> Verdict:
    return Verdict(failure_class=failure_class)


def chain(*links: Link, mode: FallbackMode = FallbackMode.CONTINUE) -> ChainState:
    return ChainState(links=tuple(ChainLink(link=link) for link in links), mode=mode)


def failure(message: str = "boom", *, retry_after_s: float | None = None, cut: bool = False) -> CallFailure:
    return CallFailure(
        kind=FailureKind.STATUS, message=message, retry_after_s=retry_after_s, content_delivered=cut
    )


def left(link: Link, failure_class: FailureClass, message: str = "boom") -> LeftLink:
    return LeftLink(link=link, reason=message, failure_class=failure_class, failure=failure(message))


def retried(state: ChainState, failure_class: FailureClass = FailureClass.TRANSIENT) -> ChainState:
    retry = after(state, of(failure_class), failure())
    assert isinstance(retry, Retry)
    return retry.state


def moved(
    state: ChainState, message: str = "boom", failure_class: FailureClass = FailureClass.UNAVAILABLE
) -> ChainState:
    following = after(state, of(failure_class), failure(message))
    assert isinstance(following, NextLink)
    return following.state


def stopped(state: ChainState, failure_class: FailureClass, seen: CallFailure | None = None) -> Stop:
    stop = after(state, of(failure_class), seen or failure())
    assert isinstance(stop, Stop)
    return stop


@pytest.mark.parametrize("failure_class", RETRIED)
def test_a_link_gets_one_retry(failure_class: FailureClass) -> None:
    """CHAIN-2."""
    again = after(chain(ONE, TWO), of(failure_class), failure())
    assert isinstance(again, Retry)
    assert again.state.link == ONE
    assert moved(again.state, failure_class=failure_class).link == TWO


@pytest.mark.parametrize("second", RETRIED)
@pytest.mark.parametrize("first", RETRIED)
def test_the_retry_is_shared_by_the_classes_that_have_one(first: FailureClass, second: FailureClass) -> None:
    """CHAIN-2."""
    state = retried(chain(ONE, TWO), first)
    assert moved(state, failure_class=second).link == TWO


def test_unavailable_skips_the_retry() -> None:
    """CHAIN-3."""
    following = after(chain(ONE, TWO), of(FailureClass.UNAVAILABLE), failure())
    assert following == NextLink(
        state=ChainState(
            links=chain(ONE, TWO).links, position=1, left=(left(ONE, FailureClass.UNAVAILABLE),)
        ),
        left=left(ONE, FailureClass.UNAVAILABLE),
    )


def test_every_link_has_a_retry_of_its_own() -> None:
    """CHAIN-2."""
    assert retried(moved(retried(chain(ONE, TWO)))).link == TWO


def test_every_step_has_a_retry_of_its_own() -> None:
    """CHAIN-2."""
    assert retried(answered(retried(chain(ONE, TWO)), streamed=False)).link == ONE


def test_a_selected_fallback_stays_selected_for_later_steps() -> None:
    """CHAIN-6."""
    state = answered(moved(chain(ONE, TWO, THREE)), streamed=True)
    assert state.link == TWO
    assert moved(state).link == THREE


@pytest.mark.parametrize("failure_class", ENDING)
def test_some_failures_end_the_chain_with_their_own_error(failure_class: FailureClass) -> None:
    """CHAIN-3: the next provider would get the same request."""
    stop = stopped(chain(ONE, TWO), failure_class)
    assert stop.state.link == ONE
    assert not stop.exhausted
    assert stop.error.type in {
        "provider_auth",
        "provider_rejected",
        "content_filtered",
        "cancelled",
        "internal_error",
    }


def test_an_ending_failure_of_a_fallback_tells_what_came_before_it() -> None:
    stop = stopped(moved(chain(ONE, TWO, THREE), "overloaded"), FailureClass.AUTH, failure("bad key"))
    assert stop.error == RunError(
        message="provider two failed (auth): bad key; before it: one/m failed (unavailable): overloaded",
        type="provider_auth",
        error_class=ErrorClass.PROVIDER,
    )
    assert stop.state.fallbacks_taken == (ONE, TWO)


@pytest.mark.parametrize("failure_class", [FailureClass.CANCELLED, FailureClass.INTERNAL])
def test_what_is_no_fault_of_the_link_does_not_use_it_up(failure_class: FailureClass) -> None:
    assert stopped(chain(ONE, TWO), failure_class).state.fallbacks_taken == ()


@pytest.mark.parametrize("failure_class", FailureClass)
def test_what_was_delivered_is_never_replayed(failure_class: FailureClass) -> None:
    """CHAIN-7."""
    stop = stopped(chain(ONE, TWO), failure_class, failure("connection reset", cut=True))
    assert not stop.exhausted
    by_intent = {FailureClass.CONTENT_FILTERED, FailureClass.CANCELLED, FailureClass.INTERNAL}
    assert (stop.error.type == "stream_error") == (failure_class not in by_intent)


def test_an_only_link_fails_with_its_own_error() -> None:
    """CHAIN-1."""
    stop = stopped(retried(chain(ONE)), FailureClass.TRANSIENT)
    assert stop == Stop(
        state=ChainState(links=chain(ONE).links, retried=True, left=(left(ONE, FailureClass.TRANSIENT),)),
        error=RunError(
            message="provider one failed (transient): boom",
            type="provider_unavailable",
            error_class=ErrorClass.PROVIDER,
        ),
        exhausted=False,
    )


def test_an_exhausted_chain_fails_with_the_first_links_error_and_names_them_all() -> None:
    """CHAIN-10."""
    state = moved(moved(chain(ONE, TWO, THREE), "overloaded"), "connection refused")
    stop = stopped(state, FailureClass.UNAVAILABLE, failure("no such host"))
    assert stop.exhausted
    assert stop.state.fallbacks_taken == (ONE, TWO, THREE)
    assert stop.error == RunError(
        message=(
            "provider one failed (unavailable): overloaded; no link is left: "
            "one/m failed (unavailable): overloaded; two/m failed (unavailable): connection refused; "
            "three/m failed (unavailable): no such host"
        ),
        type="chain_exhausted",
        error_class=ErrorClass.PROVIDER,
    )


def test_the_first_failure_of_the_turn_is_the_cause_in_every_later_step() -> None:
    """CHAIN-10: at every call site."""
    state = answered(moved(chain(ONE, TWO), "overloaded"), streamed=False)
    stop = stopped(state, FailureClass.UNAVAILABLE, failure("later"))
    assert stop.error.message.startswith("provider one failed (unavailable): overloaded; no link is left")


def tooled(*supporting: bool, mode: FallbackMode = FallbackMode.CONTINUE) -> ChainState:
    links = tuple(
        ChainLink(link=link, supports_tools=supports)
        for link, supports in zip((ONE, TWO, THREE), supporting, strict=False)
    )
    return ChainState(links=links, needs_tools=True, mode=mode)


def test_a_turn_without_tools_begins_with_its_primary() -> None:
    assert begin(chain(ONE, TWO)) == chain(ONE, TWO)
    assert begin(tooled(True, False)) == tooled(True, False)


def test_a_link_without_tool_support_is_skipped_at_the_start() -> None:
    """CHAIN-4."""
    skip = LeftLink(link=ONE, reason="no_tool_support")
    begun = begin(tooled(False, True))
    assert isinstance(begun, NextLink)
    assert begun.state.link == TWO
    assert (begun.left, begun.skipped) == (skip, (skip,))
    assert begun.state.fallbacks_taken == (ONE,)


def test_a_link_without_tool_support_is_skipped_on_the_way() -> None:
    """CHAIN-4."""
    following = after(tooled(True, False, True), of(FailureClass.UNAVAILABLE), failure())
    assert isinstance(following, NextLink)
    assert following.state.link == THREE
    assert following.skipped == (LeftLink(link=TWO, reason="no_tool_support"),)
    assert following.left.link == ONE
    assert following.state.fallbacks_taken == (ONE, TWO)


def test_a_chain_whose_rest_cannot_call_tools_is_exhausted() -> None:
    """CHAIN-4, CHAIN-10."""
    stop = stopped(tooled(True, False), FailureClass.UNAVAILABLE)
    assert stop.exhausted
    assert stop.skipped == (LeftLink(link=TWO, reason="no_tool_support"),)
    assert stop.error.message.endswith("one/m failed (unavailable): boom; two/m was skipped: no_tool_support")


@pytest.mark.parametrize(
    ("supporting", "error_type"),
    [((False,), "no_tool_support"), ((False, False), "chain_exhausted")],
)
def test_a_turn_with_tools_that_no_link_supports_makes_no_call(
    supporting: tuple[bool, ...], error_type: str
) -> None:
    """CHAIN-4."""
    begun = begin(tooled(*supporting))
    assert isinstance(begun, Stop)
    assert begun.error.type == error_type
    assert begun.error.error_class is ErrorClass.INVALID
    assert begun.exhausted == (len(supporting) > 1)
    assert len(begun.skipped) == len(supporting)


def test_a_restarted_turn_falls_back_until_something_was_streamed() -> None:
    """CHAIN-7."""
    unseen = answered(chain(ONE, TWO, mode=FallbackMode.RESTART), streamed=False)
    assert moved(unseen).link == TWO


def test_a_restarted_turn_cannot_fall_back_once_an_earlier_step_has_streamed() -> None:
    """CHAIN-7: its beginning was seen. The same link may still be tried again: that repeats nothing."""
    seen = answered(chain(ONE, TWO, mode=FallbackMode.RESTART), streamed=True)
    again = retried(answered(seen, streamed=False))
    stop = stopped(again, FailureClass.TRANSIENT)
    assert not stop.exhausted
    assert stop.error.type == "provider_unavailable"


def test_a_continued_turn_falls_back_whatever_an_earlier_step_has_streamed() -> None:
    """CHAIN-6."""
    assert moved(answered(chain(ONE, TWO), streamed=True)).link == TWO


def test_a_model_that_declares_nothing_is_taken_to_have_no_tools() -> None:
    """CHAIN-4."""
    begun = begin(ChainState(links=(ChainLink(link=ONE),), needs_tools=True))
    assert isinstance(begun, Stop)


def test_the_cause_is_a_failure_before_it_is_a_skip() -> None:
    """CHAIN-10: what was called and failed says more than what was passed over."""
    begun = begin(tooled(False, True))
    assert isinstance(begun, NextLink)
    stop = stopped(begun.state, FailureClass.UNAVAILABLE, failure("overloaded"))
    assert stop.error.message == (
        "provider two failed (unavailable): overloaded; no link is left: "
        "one/m was skipped: no_tool_support; two/m failed (unavailable): overloaded"
    )


def windows(*sizes: int | None) -> ChainState:
    links = tuple(
        ChainLink(link=link, context_window=size) for link, size in zip((ONE, TWO, THREE), sizes, strict=True)
    )
    return ChainState(links=links)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((8, 16, 32), TWO),
        ((8, 8, 32), THREE),
        ((8, 4, None), THREE),
        ((None, 4, 8), TWO),
        ((8, None, 4), TWO),
    ],
)
def test_a_context_overflow_goes_to_a_larger_or_unknown_window(
    sizes: tuple[int | None, ...], expected: Link
) -> None:
    """CLASS-3: `context_overflow_to_larger`."""
    following = after(windows(*sizes), OVERFLOW, failure("too long"))
    assert isinstance(following, NextLink)
    assert following.state.link == expected
    assert {skip.reason for skip in following.skipped} <= {"window_too_small"}


def test_any_other_failure_goes_to_the_next_link_whatever_its_window() -> None:
    assert moved(windows(32, 8, None)).link == TWO


def test_a_context_overflow_of_the_largest_window_is_an_error_of_its_own() -> None:
    """CLASS-3."""
    stop = after(windows(32, 16, 32), OVERFLOW, failure("too long"))
    assert isinstance(stop, Stop)
    assert (stop.error.type, stop.exhausted) == ("provider_rejected", False)
    assert stop.state.fallbacks_taken == (ONE,)


@pytest.mark.parametrize(
    ("wish", "least"),
    [
        (None, RETRY_WAIT_S),
        (0.0, RETRY_WAIT_S),
        (1.5, 1.5),
        (20.0, 20.0),
        (-3.0, RETRY_WAIT_S),
        (float("nan"), RETRY_WAIT_S),
        (float("inf"), RETRY_WAIT_S),
    ],
)
@given(random=st.floats(0, 1))
def test_a_wait_honours_the_providers_wish_and_is_jittered(
    wish: float | None, least: float, random: float
) -> None:
    """CHAIN-2."""
    again = after(chain(ONE), of(FailureClass.TRANSIENT), failure(retry_after_s=wish), random=random)
    assert isinstance(again, Retry)
    assert again.wait_s == pytest.approx(least + RETRY_JITTER_S * random)


@pytest.mark.parametrize("wish", [2.001, 300.0])
def test_a_wish_that_is_too_long_is_not_waited_for_where_another_link_can_serve(wish: float) -> None:
    """CHAIN-2: minutes of waiting are for those who have nobody else to ask."""
    seen, transient = failure(retry_after_s=wish), of(FailureClass.TRANSIENT)
    outcome = after(chain(ONE, TWO), transient, seen, remaining_s=600.0)
    assert isinstance(outcome, NextLink)
    assert outcome.state.link == TWO
    assert isinstance(after(chain(ONE, TWO), transient, failure(retry_after_s=2.0)), Retry)
    assert isinstance(after(outcome.state, transient, seen, remaining_s=600.0), Retry)
    mute = ChainLink(link=TWO, supports_tools=False)
    one = ChainLink(link=ONE, supports_tools=True)
    assert isinstance(after(ChainState(links=(one, mute), needs_tools=True), transient, seen), Retry)


@given(
    remaining_s=st.floats(0, 100),
    wish=st.none() | st.floats(0, 100),
    random=st.floats(0, 1),
)
def test_a_wait_never_outlives_the_deadline(remaining_s: float, wish: float | None, random: float) -> None:
    """CHAIN-2: a retry that could not be made in time is not waited for; the next link is called now."""
    seen = failure(retry_after_s=wish)
    transient = of(FailureClass.TRANSIENT)
    outcome = after(
        chain(ONE, TWO), transient, seen, remaining_s=remaining_s, retry_after_cap_s=100.0, random=random
    )
    wait_s = max(wish or 0.0, RETRY_WAIT_S) + RETRY_JITTER_S * random
    if wait_s < remaining_s:
        assert isinstance(outcome, Retry)
        assert outcome.wait_s == wait_s
    else:
        assert isinstance(outcome, NextLink)
        assert outcome.state.link == TWO


class TestCarryingOn:
    """CHAIN-14: what follows when an answer is cut in the middle and may be carried on."""

    CUT = failure("connection reset", cut=True)

    def cut(self, state: ChainState, seen: CallFailure = CUT) -> NextLink | Retry | Stop:
        return after(state, of(FailureClass.TRANSIENT), seen, recover=True)

    def carried(self, *links: Link, mode: FallbackMode = FallbackMode.CONTINUE) -> ChainState:
        """The second link is carrying on what the first has begun."""
        following = self.cut(chain(*links, mode=mode))
        assert isinstance(following, NextLink)
        return following.state

    def test_the_next_link_goes_on(self) -> None:
        state = self.carried(ONE, TWO)
        assert state.link == TWO
        assert state.cut == LeftLink(
            link=ONE, reason="connection reset", failure_class=FailureClass.TRANSIENT, failure=self.CUT
        )

    def test_without_a_next_link_the_answer_is_cut(self) -> None:
        stop = self.cut(chain(ONE))
        assert isinstance(stop, Stop)
        assert stop.error.message == "provider one broke off in the middle of its answer: connection reset"
        assert (stop.error.type, stop.exhausted) == ("stream_error", False)

    def test_a_link_that_carries_on_has_its_retry(self) -> None:
        """CHAIN-2."""
        assert retried(self.carried(ONE, TWO)).link == TWO

    def test_a_third_link_goes_on_where_the_second_broke_off(self) -> None:
        following = self.cut(self.carried(ONE, TWO, THREE))
        assert isinstance(following, NextLink)
        assert following.state.link == THREE
        assert following.state.cut is not None
        assert following.state.cut.link == ONE

    @pytest.mark.parametrize(
        "failure_class", [FailureClass.UNAVAILABLE, FailureClass.INVALID, FailureClass.AUTH]
    )
    def test_an_answer_that_nobody_could_carry_on_is_cut_and_the_chain_not_exhausted(
        self, failure_class: FailureClass
    ) -> None:
        """CHAIN-7: rule 7, if it cannot be had."""
        stop = stopped(self.carried(ONE, TWO), failure_class, failure("no prefill"))
        assert not stop.exhausted
        assert stop.state.fallbacks_taken == (ONE, TWO)
        assert stop.error == RunError(
            message=(
                "provider one broke off in the middle of its answer: connection reset; "
                "it was not carried on: one/m failed (transient): connection reset; "
                f"two/m failed ({failure_class}): no prefill"
            ),
            type="stream_error",
            error_class=ErrorClass.PROVIDER,
        )

    def test_a_filter_that_ends_the_answer_is_the_cause_all_the_same(self) -> None:
        """CHAIN-3."""
        stop = stopped(self.carried(ONE, TWO), FailureClass.CONTENT_FILTERED)
        assert stop.error.type == "content_filtered"

    def test_an_answered_step_has_no_cut_any_more(self) -> None:
        stop = stopped(answered(self.carried(ONE, TWO), streamed=True), FailureClass.UNAVAILABLE)
        assert stop.exhausted

    def test_a_begun_answer_is_not_begun_again(self) -> None:
        """CHAIN-6, CHAIN-7: in restart mode neither the link that carries on nor one after it starts anew."""
        streamed = answered(chain(ONE, TWO, THREE, mode=FallbackMode.RESTART), streamed=True)
        following = self.cut(streamed)
        assert isinstance(following, NextLink)
        assert not following.state.restarts
        assert moved(following.state).link == THREE
        assert not moved(following.state).restarts

    def test_a_failure_that_ends_the_chain_is_not_carried_on(self) -> None:
        """CHAIN-3."""
        stop = after(chain(ONE, TWO), of(FailureClass.AUTH), self.CUT, recover=True)
        assert isinstance(stop, Stop)


def test_a_provider_that_wants_to_be_paid_is_left_with_all_its_models() -> None:
    """CLASS-3; C18: 402 is `unavailable` for the credential."""
    sibling = Link(provider="one", model="other")
    unpaid = Verdict(failure_class=FailureClass.UNAVAILABLE, payment_required=True)
    following = after(chain(ONE, sibling, TWO), unpaid, failure("pay first"))
    assert isinstance(following, NextLink)
    assert following.state.link == TWO
    assert following.skipped == (LeftLink(link=sibling, reason="payment_required"),)


@pytest.mark.parametrize(
    ("state", "last"),
    [
        (chain(ONE), True),
        (chain(ONE, TWO), False),
        (moved(chain(ONE, TWO)), True),
        (tooled(True, False), True),
        (tooled(True, False, True), False),
        (answered(chain(ONE, TWO, mode=FallbackMode.RESTART), streamed=True), True),
        (answered(chain(ONE, TWO, mode=FallbackMode.RESTART), streamed=False), False),
    ],
    ids=[
        "the only one",
        "one more",
        "the second of two",
        "the rest cannot call tools",
        "one of the rest can",
        "the turn cannot start again",
        "the turn can start again",
    ],
)
def test_a_link_is_the_last_if_no_other_can_take_over(state: ChainState, last: bool) -> None:
    """CLASS-2: the last link left is bounded by the run's deadline only."""
    assert is_last(state) == last


def test_an_error_knows_when_the_provider_may_serve_again() -> None:
    """BREAK-2."""
    stop = stopped(chain(ONE), FailureClass.UNAVAILABLE, failure(retry_after_s=7.0))
    assert stop.error.retry_after_s == 7.0
    assert stopped(chain(ONE), FailureClass.AUTH, failure(retry_after_s=7.0)).error.retry_after_s is None


@pytest.mark.parametrize(
    ("first", "second", "soonest"),
    [(25.0, 5.0, 5.0), (None, 5.0, 5.0), (25.0, None, 25.0), (None, None, None)],
)
def test_an_exhausted_chain_may_serve_again_with_the_first_link_that_does(
    first: float | None, second: float | None, soonest: float | None
) -> None:
    """BREAK-2."""
    unavailable = of(FailureClass.UNAVAILABLE)
    following = after(chain(ONE, TWO), unavailable, failure(retry_after_s=first))
    stop = after(following.state, unavailable, failure(retry_after_s=second))
    assert isinstance(stop, Stop)
    assert stop.error.retry_after_s == soonest
