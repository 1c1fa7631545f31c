"""Due times of cron expressions, in their time zone."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from domain.errors import Rejected

_FIELDS = 5
_MOST_REPEATS = 200
"""Times that the clock shows twice in one night, at one a minute, and some more."""

_BACK = [timedelta(hours=1), *(timedelta(days=days) for days in (1, 8, 40, 400, 3000, 20_000))]
"""How far to look back for a time that is past, each only if the one before shows none."""


class BadCron(Rejected):
    """The expression or the time zone means no times. Correct the field that is named."""

    code = "bad_cron"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class CronCalendar:
    """A time that a clock change leaves out is due right after the change, one that it repeats is due once.

    An expression with `*` or a step for its minutes or hours follows real time instead, as in Debian's cron.
    """

    def __init__(self, cron: str, time_zone: str) -> None:
        """Raise BadCron."""
        self._cron = cron
        self._zone = _zone(time_zone)
        if len(cron.split()) != _FIELDS:
            raise BadCron("cron", f"{cron!r} must have five fields: minute, hour, day, month, weekday")
        try:
            CronSim(cron, datetime.now(self._zone))
        except CronSimError as error:
            raise BadCron("cron", f"{cron!r} is no cron expression: {error}") from error

    def after(self, moment: datetime) -> datetime | None:
        """The first due time after the moment; None if there is none for the next fifty years."""
        times = CronSim(self._cron, moment.astimezone(self._zone))
        # In an hour that the clock shows twice it may begin with times of its first pass.
        for local in islice(times, _MOST_REPEATS):
            if (due := local.astimezone(UTC)) > moment:
                return due
        return None

    def up_to(self, moment: datetime) -> datetime | None:
        """The last due time that is not after the moment.

        Found forwards, since going back through a repeated hour would find other times than going forward.
        """
        for back in _BACK:
            due = last = self.after(moment - back)
            while due is not None and due <= moment:
                last, due = due, self.after(due)
            if last is not None and last <= moment:
                return last
        return None


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, malformed, a folder of the database
        raise BadCron("time_zone", f"there is no time zone {name!r}; one is Europe/Berlin") from None
