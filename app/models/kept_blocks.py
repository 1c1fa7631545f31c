"""Parts of a reply that only the model which wrote them may be given back (CHAIN-15).

Signatures and encrypted reasoning are bound to the model and its provider: another one refuses them.
"""

from collections.abc import Sequence

import msgspec

from domain.messages import AssistantMessage, ProviderBlocks


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored as the one opaque block of a message."""

    model: str
    content: tuple[msgspec.Raw, ...]


def keep(provider: str, model: str, content: Sequence[object]) -> ProviderBlocks:
    """The whole content of a reply, word for word: providers refuse a reordered or shortened one."""
    raw = tuple(msgspec.Raw(msgspec.json.encode(block)) for block in content)
    return ProviderBlocks(
        provider=provider, blocks=(msgspec.Raw(msgspec.json.encode(_Kept(model=model, content=raw))),)
    )


def kept(message: AssistantMessage, provider: str, model: str) -> tuple[msgspec.Raw, ...] | None:
    """The content to give back to this model of this provider; None for a message of any other."""
    blocks = message.provider_blocks
    if blocks is None or blocks.provider != provider or len(blocks.blocks) != 1:
        return None
    try:
        found = msgspec.json.decode(blocks.blocks[0], type=_Kept)
    except msgspec.DecodeError:
        return None  # written by somebody else
    return found.content if found.model == model else None
