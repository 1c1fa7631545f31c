"""Whether a provider refused a request because it does not fit into the model's context window (CLASS-3)."""

from domain.failure import CallFailure

_CODE = "context_length_exceeded"
_SENTENCES = ("prompt is too long", "exceeds the maximum number of tokens", "maximum context length")
"""Wires without a code of their own for it refuse with a 400 like any other and say it in words: Anthropic,
Gemini, and servers that speak Chat Completions. This is the one place where prose is read, for a rule that is
switched off by default: what it does not recognise stays the refusal that it is."""


def is_context_overflow(failure: CallFailure) -> bool:
    if failure.code == _CODE:
        return True
    told = failure.message.lower()
    return failure.status in (400, 413) and any(sentence in told for sentence in _SENTENCES)
