"""What people decide of waiting runs, and the duty of closing what nobody decided."""

from app.assembly.ground import Ground
from app.supervision.approvals import Approvals
from app.supervision.cancels import Cancels
from app.supervision.duties import Duties, Duty
from app.supervision.expiry import Expiry
from app.supervision.runs import Runs


def approvals_of(ground: Ground, runs: Runs, cancels: Cancels, duties: Duties) -> Approvals:
    """Closing those that have expired becomes a duty (SINGLE-1)."""
    settings = ground.settings
    max_attempts = settings.async_run.max_attempts
    approvals = Approvals(ground.log, runs, cancels.heed, ground.now, max_attempts)
    expiry = Expiry(ground.pool, approvals)
    period_s = settings.approvals.expiry_interval
    duties.add(Duty(name="approval_expiry", period_s=period_s, perform=expiry.sweep))
    return approvals
