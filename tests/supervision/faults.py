"""What each fault of the upstream is to a run: seen in a stream, and in an answer that comes in one piece."""

from dataclasses import dataclass

from domain.failure import FailureClass

TRANSIENT, UNAVAILABLE = FailureClass.TRANSIENT, FailureClass.UNAVAILABLE
RETRIED = frozenset({TRANSIENT, FailureClass.EMPTY, FailureClass.ERROR_PRE})
COUNTED = frozenset({TRANSIENT, UNAVAILABLE, FailureClass.ERROR_PRE, FailureClass.AUTH})
ERROR_TYPES = {
    FailureClass.AUTH: "provider_auth",
    FailureClass.INVALID: "provider_rejected",
    FailureClass.CONTENT_FILTERED: "content_filtered",
}


@dataclass(frozen=True)
class Answers:
    """It is no fault after all."""

    text: str = "Hello there."


@dataclass(frozen=True)
class Fails:
    """The class of the failure, and the text that came before it."""

    failure_class: FailureClass
    delivered: str = ""

    def unseen(self) -> "Fails":
        """The same where nobody watched: nothing was delivered."""
        return Fails(self.failure_class)


Outcome = Answers | Fails


@dataclass(frozen=True)
class Fault:
    """`whole`: unstreamed; None where the upstream can do it in a stream only.

    `limits` are the provider's own time limits, for faults that take time.
    """

    streamed: Outcome
    whole: Outcome | None
    limits: dict[str, float] | None = None


def same(outcome: Outcome, **limits: float) -> Fault:
    return Fault(outcome, outcome, limits or None)


def streams_only(outcome: Outcome, **limits: float) -> Fault:
    return Fault(outcome, None, limits or None)


HELLO = Answers()
GONE, REFUSES = same(Fails(TRANSIENT)), same(Fails(UNAVAILABLE))
REJECTS = same(Fails(FailureClass.INVALID))
FILTERED = same(Fails(FailureClass.CONTENT_FILTERED))
CUT = Fails(TRANSIENT, "Hello there ")
SILENCE = same(Fails(UNAVAILABLE), first_content=0.4, call=1.0)
# On a busy machine what comes before the stall may take its time, too.
STALLS = {"first_content": 10.0, "stream_idle": 1.0, "call": 3.0}

FAULTS: dict[str, Fault] = {
    # Answers, some of them strange
    "text": same(Answers("Hello there you.")),
    "unicode": same(Answers("Grüße 日本 🛫")),
    "byte-by-byte": streams_only(Answers("Grüße 🛫\n\nbye")),
    "200-json-whole": same(HELLO),
    "crlf": streams_only(HELLO),
    "comments-then-text": streams_only(HELLO),
    "broken-event": streams_only(HELLO),
    "no-terminator": same(HELLO),
    "fin-after-finish": streams_only(HELLO),
    "reset-after-finish": streams_only(HELLO),
    "hangs-after-finish": streams_only(HELLO),
    "reports-after-finish": streams_only(HELLO),
    "comments-after-finish": streams_only(HELLO),
    # Statuses
    "400": REJECTS,
    "401": same(Fails(FailureClass.AUTH)),
    "402": REJECTS,
    "404": REJECTS,
    "408": GONE,
    "413": REJECTS,
    "422": REJECTS,
    "429": REFUSES,
    "429-after-1": GONE,
    "429-after-60": REFUSES,
    "429-after-ms": GONE,
    "429-after-date": REFUSES,
    "429-after-nonsense": REFUSES,
    "429-no-quota": REFUSES,
    "500": GONE,
    "502": GONE,
    "503": REFUSES,
    "504": GONE,
    "529": REFUSES,
    "redirect": GONE,
    "context-overflow": REJECTS,
    "filtered-prompt": FILTERED,
    "echoes-the-key": same(Fails(FailureClass.AUTH)),
    "502-page": GONE,
    "503-page": REFUSES,
    "500-endless": GONE,
    # Successes that are none
    "200-page": GONE,
    "200-nothing": GONE,
    "200-no-json": GONE,
    "200-json-error": REFUSES,
    "empty": same(Fails(FailureClass.EMPTY)),
    "content-filter": FILTERED,
    "content-filter-late": Fault(
        Fails(FailureClass.CONTENT_FILTERED, "Well, "), Fails(FailureClass.CONTENT_FILTERED)
    ),
    "reports-500": GONE,
    "reports-overload": REFUSES,
    "reports-rate-limit": REFUSES,
    "reports-unknown": same(Fails(FailureClass.ERROR_PRE)),
    "reports-late": Fault(Fails(TRANSIENT, "Hello "), Fails(TRANSIENT)),
    # The socket
    "reset": GONE,
    "reset-after-preamble": GONE,
    "cut-0": GONE,
    "cut-2": Fault(CUT, Fails(TRANSIENT)),
    "cut-in-tool-call": streams_only(Fails(TRANSIENT)),
    "ends-without-finish": streams_only(CUT),
    "terminator-without-finish": streams_only(CUT),
    "not-http": GONE,
    "endless-line": streams_only(Fails(TRANSIENT, "Hello ")),
    # Time
    "silent": SILENCE,
    "silent-after-preamble": SILENCE,
    "comments-only": SILENCE,
    "stall-2": Fault(CUT, Fails(UNAVAILABLE), STALLS),
    "stall-in-body": Fault(CUT, Fails(TRANSIENT), STALLS),
    "half-an-event": streams_only(CUT, **STALLS),
    "half-of-the-first-event": streams_only(Fails(UNAVAILABLE), first_content=0.4, call=1.0),
    "thinks-then-hangs": Fault(Fails(TRANSIENT), Fails(UNAVAILABLE), STALLS),
}

NO_FAULTS = {
    "tools", "tool-only", "thinker", "length",  # answers that another call follows
    "rest-and-fin-behind-the-gate", "terminator-behind-the-gate",  # they wait for a test
}  # fmt: skip

# Some wires have no code of their own for what others have one for: then it is a refusal like any other.
OF_FAMILY: dict[str, dict[str, Fault]] = {
    "chat": {},
    "responses": {},
    "messages": {"filtered-prompt": REJECTS},
    "gemini": {"filtered-prompt": REJECTS},
}


def faults_of(family: str) -> dict[str, Fault]:
    return {**FAULTS, **OF_FAMILY[family]}
