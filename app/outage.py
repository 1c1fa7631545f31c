"""What a background duty says of a store that is away: a line when it finds that, and one when it is over."""

import logging

from app.clock import elapsed_s


class Outage:
    """One for each duty. However often it tries in between, nobody wants to read of each attempt."""

    def __init__(self, log: logging.Logger, duty: str) -> None:
        self._log = log
        self._duty = duty
        self._since: float | None = None

    def met(self, error: BaseException) -> None:
        """An attempt failed for it."""
        if self._since is None:
            self._since = elapsed_s()
            told = str(error) or type(error).__name__
            self._log.warning("outage.began", extra={"duty": self._duty, "error": told})

    def over(self) -> None:
        """An attempt went well."""
        if self._since is not None:
            lasted_s = round(elapsed_s() - self._since, 3)
            self._since = None
            self._log.warning("outage.ended", extra={"duty": self._duty, "lasted_s": lasted_s})
