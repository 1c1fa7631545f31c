"""One event for each golden file of an agent that is defined over HTTP."""

from domain.agent import AgentDefinition
from domain.event import Event
from domain.events import AgentDefined, AgentRemoved

AGENT_SAMPLES: dict[str, Event] = {
    "agent.defined.v1": AgentDefined(
        definition=AgentDefinition(name="support", provider="primary", model="small", tools=("get_order",)),
        by="01a22a29-1230-77e8-b852-a5233d21163d",
    ),
    "agent.removed.v1": AgentRemoved(name="support", by="01a22a29-1230-77e8-b852-a5233d21163d"),
}
