"""What every actor of a host works with. Built once, by the composition root."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.metrics import Metrics
from app.models.accounts import Accounts
from app.models.gate import Gate
from app.settings import (
    ApprovalsSettings,
    ChainSettings,
    RecordingSettings,
    StoreSettings,
    ToolLoopSettings,
    TurnSettings,
)
from app.store.event_log import EventLog
from app.supervision.agent_tools import AgentTools
from app.supervision.presence import Presence
from app.supervision.spending import Trees
from app.tools.registry import ToolRegistry
from app.tools.runner import ToolRunner
from domain.agent import Link
from domain.chain.policy import ChainLink
from domain.pricing import Price


@dataclass(frozen=True, kw_only=True)
class Workbench:
    """Shared by all actors; holds no state of any run."""

    host: str
    log: EventLog
    presence: Presence
    accounts: Accounts
    """Whoever calls a model does so on the account of the run's tenant."""
    gate: Gate
    chain_link: Callable[[Link], ChainLink]
    """A link and what its model was declared to be able to do."""
    prices: Mapping[Link, Price]
    currency: str
    tools: ToolRegistry
    agents: AgentTools
    """The agents as tools of others."""
    trees: Trees
    tool_runner: ToolRunner
    metrics: Metrics
    turn: TurnSettings
    tool_loop: ToolLoopSettings
    chain: ChainSettings
    recording: RecordingSettings
    store: StoreSettings
    approvals: ApprovalsSettings
