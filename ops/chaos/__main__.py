"""`python -m ops.chaos [--seed N] [--minutes M] [--hosts H]`: one trial.

`kills`: a kill at every await of an agent's run. `workflow-kills`: of a workflow.
"""

import argparse
import logging
import secrets
import sys
from pathlib import Path

import uvloop
from rich.console import Console

from ops.chaos import kills, report, trial, workflow_kills


def main(arguments: list[str]) -> int:
    """0 if every promise was kept."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING, format="%(message)s")
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)  # our own pool meets the outages too
    logging.getLogger("aiohttp.server").addFilter(_is_no_hang_up)
    if options.what == "kills":
        return _kills(options.point)
    if options.what == "workflow-kills":
        return _workflow_kills(options.point)
    return _trial(options)


def _is_no_hang_up(record: logging.LogRecord) -> bool:
    """The provider's callers die in the middle of answers, and that is as it should be."""
    return not (record.exc_info and isinstance(record.exc_info[1], ConnectionError))


def _kills(points: list[str]) -> int:
    found = uvloop.run(kills.run(points or kills.POINTS))
    report.show_kills(found, _console())
    return int(any(verdict.violations for verdict in found))


def _workflow_kills(points: list[str]) -> int:
    rehearsed = uvloop.run(workflow_kills.run(points or workflow_kills.POINTS))
    workflow_kills.show(rehearsed, _console())
    return int(any(one.violations for one in rehearsed))


def _trial(options: argparse.Namespace) -> int:
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    wanted = trial.Options(
        seed=seed,
        seconds=options.minutes * 60,
        hosts=options.hosts,
        per_second=options.rate,
        gap_s=options.gap,
    )
    if options.keep:
        options.keep.mkdir(parents=True)
    kept = False
    try:
        outcome = uvloop.run(trial.run(wanted, options.keep))
        report.show(outcome, _console())
        kept = not outcome.violations
    finally:
        if not kept:
            again = f"python -m ops.chaos --seed {seed} --minutes {options.minutes:g} --hosts {options.hosts}"
            print(f"To do it again: {again} --rate {options.rate:g} --gap {options.gap:g}", flush=True)
    return int(not kept)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 160)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ops.chaos", description="Break things under load, and audit."
    )
    parser.add_argument(
        "what", nargs="?", choices=["trial", "kills", "workflow-kills"], default="trial", help="what to do"
    )
    parser.add_argument("--seed", type=int, help="what happens and when; left out, a new one")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long things are broken (10)")
    parser.add_argument("--hosts", type=int, default=3, help="how many hosts (3)")
    parser.add_argument("--rate", type=float, default=2.0, help="submissions per second (2)")
    parser.add_argument("--gap", type=float, default=2.5, help="seconds between faults (2.5)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder that keeps logs and database")
    parser.add_argument(
        "--point", choices=kills.POINTS, action="append", default=[], help="kills: only this one"
    )
    parser.add_argument("--verbose", action="store_true", help="tell each fault as it happens")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
