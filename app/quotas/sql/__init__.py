"""The quotas' SQL, one statement per file."""

from functools import cache
from importlib.resources import files


@cache
def sql(name: str) -> str:
    """The statement in `<name>.sql`."""
    return (files(__package__) / f"{name}.sql").read_text()
