"""`python -m ops.bench [NAME ...]`: the named benchmarks, or all of them."""

import sys

from ops.bench import append, gate, memory, orphans, peers, queue, run

BENCHMARKS = {
    "append": append.run,
    "run": run.run,
    "queue": queue.run,
    "memory": memory.run,
    "orphans": orphans.run,
    "gate": gate.run,
    "peers": peers.run,
}
APART = {"peers"}
"""Not among all of them: it installs other people's programs."""


def main(names: list[str]) -> None:
    """Run them one after the other; an unknown name lists the known ones."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise SystemExit(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    for name in names or BENCHMARKS.keys() - APART:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
