"""What may follow a failed model call: a retry, a skip, a switch, the end of the chain."""

from typing import assert_never

from domain import events as e
from domain.agent import Link
from domain.chain.policy import NO_FAULT_OF_THE_LINK
from domain.commands import ChainCommand, ExhaustChain, RetryModelCall, SkipLink, UseFallback
from domain.failure import RunError
from domain.refusals import OutOfTurn, require
from domain.run import Run, RunStatus


def decide(run: Run, command: ChainCommand) -> list[e.RunEvent]:
    match command:
        case RetryModelCall():
            return _retry(run, command)
        case SkipLink():
            return _skip(run, command)
        case UseFallback():
            return _use_fallback(run, command)
        case ExhaustChain():
            return _exhaust(run, command)
        case _:
            assert_never(command)


def _retry(run: Run, command: RetryModelCall) -> list[e.RunEvent]:
    """At most one per link and step (CHAIN-2)."""
    _require_between_calls(run)
    link = run.standing.failed_link
    if link is None:
        raise OutOfTurn(f"run {run.id} has no failed call to retry")
    require(not run.standing.retried, run, "the link has had its retry in this step")
    return [
        e.ModelCallRetried(
            step=_step(run),
            provider=link.provider,
            model=link.model,
            failure_class=run.failed[-1],
            wait_ms=command.wait_ms,
        )
    ]


def _skip(run: Run, command: SkipLink) -> list[e.RunEvent]:
    _require_between_calls(run)
    link = command.link
    if link in run.standing.left:
        return []
    return [
        e.ChainLinkSkipped(step=_step(run), provider=link.provider, model=link.model, reason=command.reason)
    ]


def _use_fallback(run: Run, command: UseFallback) -> list[e.RunEvent]:
    """Only away from a link that failed or was skipped (CHAIN-11)."""
    _require_between_calls(run)
    standing = run.standing
    if standing.failed_link is None and not standing.between_links:
        require(standing.fallback == command.fallback, run, "no link has failed or been skipped")
        return []
    return [
        e.ModelFallbackUsed(
            primary=run.definition.links[0] if run.definition else command.fallback,
            fallback=command.fallback,
            failure_class=run.failed[-1] if run.failed else None,
            reason=command.reason,
            step=_step(run),
            restarted=command.restarted,
        )
    ]


def _exhaust(run: Run, command: ExhaustChain) -> list[e.RunEvent]:
    if run.standing.exhausted is not None:
        return []
    _require_between_calls(run)
    links = run.standing.used_up
    require(bool(links), run, "no link has failed or been skipped")
    error = command.error
    return [
        e.ChainExhausted(
            step=_step(run),
            links=links,
            error=error.message,
            error_class=error.error_class,
            retry_after_s=error.retry_after_s,
        )
    ]


def fail(run: Run, error: RunError) -> list[e.RunEvent]:
    """Once the chain is exhausted that is the cause, whatever else is said about it (CHAIN-10)."""
    standing = run.standing
    cause = standing.exhausted or error
    return [
        e.RunFailed(
            error=cause.message,
            error_type=cause.type,
            error_class=cause.error_class,
            fallbacks_taken=fallbacks_taken(run),
            refunded=standing.exhausted is not None,
            retry_after_s=cause.retry_after_s,
        )
    ]


def fallbacks_taken(run: Run) -> tuple[Link, ...]:
    """The links that failed or were skipped (CHAIN-11). A chain of one link has nothing to list."""
    if run.definition is None or not run.definition.fallbacks:
        return ()
    faultless = bool(run.failed) and run.failed[-1] in NO_FAULT_OF_THE_LINK
    return run.standing.left if faultless else run.standing.used_up


def _step(run: Run) -> int:
    return run.step if run.failed else run.step + 1


def _require_between_calls(run: Run) -> None:
    require(run.status is RunStatus.RUNNING, run, "it is not running")
    require(run.calling is None, run, "a model call is in flight")
    require(not run.open_calls, run, "tool calls are without a result")
    require(run.standing.exhausted is None, run, "no link is left")
