"""What every command is. The commands are in `commands` and in the modules that it gathers."""

import msgspec


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Imperative, and refused with an error when the run's state does not allow it."""
