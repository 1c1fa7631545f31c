"""Settings of agents that call one another, on scripted models."""


def graph(agents: str, more: str = "", **models: str) -> str:
    """Models by name, each a line for what it does, reply by reply in a turn; and tables of agents."""
    told = "".join(
        f"[[providers.script.models.{name}.default]]\n{reply}\n"
        for name, replies in models.items()
        for reply in replies.strip().splitlines()
    )
    return f'{more}\n[providers.script]\ntype = "scripted"\n{told}\n{agents}\n'


def agent(name: str, *, agents: tuple[str, ...] = (), tools: tuple[str, ...] = (), more: str = "") -> str:
    """An agent on the model of its name."""
    listed = {"agents": agents, "tools": tools}
    lines = [f"{key} = [{', '.join(map(repr, names))}]" for key, names in listed.items() if names]
    return "\n".join((f"[agents.{name}]", 'provider = "script"', f'model = "{name}"', *lines, more, ""))


def asks(name: str, message: str = "look", **parameters: str) -> str:
    """A reply that calls an agent."""
    given = ", ".join(f'{key} = "{value}"' for key, value in {"message": message, **parameters}.items())
    return f'tool_call = {{ name = "{name}", arguments = {{ {given} }} }}'


def calls(name: str, times: int = 1) -> str:
    """A reply that calls a tool, so many times."""
    return f"tool_calls = [{', '.join([f'{{ name = {name!r} }}'] * times)}]"


def asks_all(name: str, *messages: str) -> str:
    """A reply that calls an agent once for each message."""
    listed = ", ".join(f'{{ name = "{name}", arguments = {{ message = "{text}" }} }}' for text in messages)
    return f"tool_calls = [{listed}]"
