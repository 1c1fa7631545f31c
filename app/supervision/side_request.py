"""What a model is asked besides the agent's turn: a question about it, and no part in it (CHAIN-13)."""

from typing import Any

import msgspec

from app.models.port import ModelRequest
from app.settings import ChainSettings
from domain.agent import ModelOptions
from domain.chain.policy import ChainState, is_last
from domain.messages import UserMessage


class SideQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """`can_do_without`: whether the run goes on without an answer, so that no link gets all of its time."""

    instructions: str
    material: str
    response_schema: dict[str, Any] | None = None
    can_do_without: bool = False


def request_for(
    asked: SideQuestion, options: ModelOptions, state: ChainState, chain: ChainSettings
) -> ModelRequest:
    """The request to the link that `state` is at."""
    unbounded = is_last(state) and not asked.can_do_without
    return ModelRequest(
        model=state.link.model,
        instructions=asked.instructions,
        messages=(UserMessage(content=asked.material),),
        options=options,
        response_schema=asked.response_schema,
        # The last link left has all the time that the run has (CLASS-2).
        first_content_timeout_s=None if unbounded else chain.first_content_timeout,
    )
