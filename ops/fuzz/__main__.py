"""`python -m ops.fuzz [--examples N] [--seed N]`: a service of its own, asked everything."""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from app.cli.service_process import ServiceProcess
from ops.fuzz.examples import Found, Fuzzer
from ops.fuzz.service import ARGUMENTS, VARIABLES, crashes


async def main(arguments: list[str]) -> int:
    """0 if every answer is one that the description has, and none is a failure of the service."""
    options = _parser().parse_args(arguments)
    os.environ.update(VARIABLES)
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "log")
        where = ("--port", "0", "--data-dir", f"{scratch}/data")
        service = await ServiceProcess.start(*ARGUMENTS, *where, log=log)
        try:
            found = await asyncio.to_thread(
                lambda: Fuzzer(service.url, seed=options.seed).ask(options.examples)
            )
        finally:
            await service.close()
        crashed = crashes(log)
    _show(found, crashed, options.seed)
    return int(bool(found.faults or crashed))


def _ask(url: str, options: argparse.Namespace) -> Found:
    return Fuzzer(url, seed=options.seed).ask(options.examples)


def _show(found: Found, crashed: list[str], seed: int) -> None:
    for kind, detail in found.faults.items():
        print(f"{kind}\n{detail}\n")
    for line in crashed:
        print(line)
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(found.statuses.items()))
    refused = [name for name, answers in found.operations.items() if min(answers) >= 300]
    print(f"always refused: {', '.join(refused) or 'none'}")
    print(f"seed {seed}: {found.asked} requests to {len(found.operations)} operations")
    print(f"answers: {statuses}")
    print(f"faults: {len(found.faults)}; crashes in the log: {len(crashed)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=2000, help="how many requests, at least (2000)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    return parser


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
