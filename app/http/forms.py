"""Every kind of answer that can be given again (IDEM)."""

from collections.abc import Mapping

from app.http.openai.keys import COMPLETION, QUEUED_RESPONSE, RESPONSE
from app.http.outcomes import RUN
from app.http.queued import accepted
from app.idempotency.answer import Form


def forms(prefix: str) -> Mapping[str, Form]:
    """By the name that is recorded with every key. A name is never used for another kind.

    The prefix is that of the service's paths, some of which an answer may name.
    """
    return {form.name: form for form in (RUN, COMPLETION, RESPONSE, QUEUED_RESPONSE, accepted(prefix))}
