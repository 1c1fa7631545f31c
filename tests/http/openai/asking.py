"""What these tests say to an agent."""

from openai.types.chat import ChatCompletionMessageParam, ChatCompletionUserMessageParam


def ask(text: str = "Well?") -> list[ChatCompletionMessageParam]:
    return [ChatCompletionUserMessageParam(role="user", content=text)]
