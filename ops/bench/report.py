"""How a benchmark says what it measured and where."""

import os
import platform
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

console = Console()


def machine() -> str:
    """The machine in one line, for the top of every table."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores of {model}, {system}"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> None:
    """Print one table; the first column names what the row measures."""
    shown = Table(
        title=f"{title}\n{machine()}", title_justify="left", caption=note or None, caption_justify="left"
    )
    for number, column in enumerate(columns):
        shown.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


def interleaved(rounds: int, *contenders: Callable[[], float]) -> list[list[float]]:
    """Each contender's figures, taken in turns (A B A B ...): a drift of the machine meets all alike."""
    figures: list[list[float]] = [[] for _ in contenders]
    for _ in range(rounds):
        for place, contender in enumerate(contenders):
            figures[place].append(contender())
    return figures


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of each round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def spread(figures: Sequence[float], form: str = ",.0f") -> str:
    """Median, and in brackets the least and the most."""
    low, middle, high = min(figures), statistics.median(figures), max(figures)
    return f"{middle:{form}} ({low:{form}}..{high:{form}})"
