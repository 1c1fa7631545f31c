"""What a request asks of the run beyond its messages: options and labels."""

from typing import Annotated

from msgspec import Meta

from domain.agent import ModelOptions

Temperature = Annotated[float, Meta(ge=0, le=2)]
Probability = Annotated[float, Meta(ge=0, le=1)]
TokenLimit = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_StopText = Annotated[str, Meta(min_length=1)]
Stop = _StopText | Annotated[tuple[_StopText, ...], Meta(max_length=4)]
Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
"""The caller's own labels."""


def options_of(
    *,
    temperature: float | None,
    top_p: float | None,
    max_output_tokens: int | None,
    stop: str | tuple[str, ...] | None = None,
    seed: int | None = None,
) -> ModelOptions:
    return ModelOptions(
        temperature=temperature,
        top_p=top_p,
        max_output_tokens=max_output_tokens,
        stop=(stop,) if isinstance(stop, str) else stop or (),
        seed=seed,
    )
