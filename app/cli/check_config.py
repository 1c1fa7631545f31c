"""`tracon check-config`."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import click

from app.cli import options
from app.jobs.triggers import TriggerMisconfigured, triggers_of
from app.models.adapters import ProviderMisconfigured, build, each_account
from app.models.http import HttpSession
from app.registry import Catalog, load_app
from app.settings.profiles import Profile
from app.settings.whole import Settings
from app.workflow_catalog import WorkflowCatalog


@click.command("check-config")
@options.config
@options.app
@options.profile
def check_config(config: Path | None, app_source: str | None, profile: Profile | None) -> None:
    """Check settings, tools and agents without starting anything."""
    settings = options.settings_of(config, profile=profile)
    app = load_app(app_source)
    catalog = Catalog.build(settings, app)
    workflows = WorkflowCatalog.build(settings, app, catalog)
    _list("providers", (_provider(name, settings) for name in settings.providers))
    _list("agents", (f"{agent.name} ({agent.links[0]})" for agent in catalog.agents()))
    _list("workflows", (f"{one.name} ({one.kind})" for one in workflows.workflows()))
    _list("tools", (_tool(name, catalog) for name in catalog.tools.names()))
    for warning in _missing_here(settings):
        click.echo(f"warning: {warning}", err=True)
    click.echo("everything fits together")


def _missing_here(settings: Settings) -> Iterator[str]:
    """What the settings need of the machine, such as keys, and this one does not have."""
    http = HttpSession()
    accounts = (each_account(name, provider) for name, provider in settings.providers.items())
    for account, provider in chain.from_iterable(accounts):
        try:
            build(account, provider, http)
        except ProviderMisconfigured as error:
            yield str(error)
    for name, trigger in settings.triggers.items():
        try:
            triggers_of({name: trigger})
        except TriggerMisconfigured as error:
            yield str(error)


def _list(title: str, entries: Iterable[str]) -> None:
    click.echo(f"{title}: {', '.join(entries) or 'none'}")


def _provider(name: str, settings: Settings) -> str:
    provider = settings.providers[name]
    models = ", ".join(provider.models) or "any model"
    return f"{name} ({provider.type}: {models})"


def _tool(name: str, catalog: Catalog) -> str:
    tool = catalog.tools.get(name)
    return f"{name} ({tool.effect})" if tool else name
