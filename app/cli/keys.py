"""`tracon keys`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from app.assembly.stores import open_database
from app.cli import options
from app.db.pool import closing_pool
from app.keys.key import NAME_LENGTH, ApiKey, Scope, TenantName, prefix_of
from app.keys.store import KeyStore
from app.settings import parse_duration
from app.settings.whole import Settings
from domain.ids import DEFAULT_TENANT

T = TypeVar("T")

_SHOWN_AT_MOST = 10_000


def _printable(_: click.Context, __: click.Parameter, name: str) -> str:
    if not name.isprintable() or not 0 < len(name) <= NAME_LENGTH:
        raise click.BadParameter(f"up to {NAME_LENGTH} printable characters")
    return name


def _tenant(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    try:
        return msgspec.convert(name, TenantName | None)
    except msgspec.ValidationError:
        raise click.BadParameter("up to 64 letters, digits, dots, dashes and underscores") from None


def _seconds(_: click.Context, __: click.Parameter, duration: str | None) -> float | None:
    try:
        seconds = None if duration is None else parse_duration(duration)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if seconds is not None and seconds <= 0:
        raise click.BadParameter("must be longer than that")
    return seconds


@click.group()
def keys() -> None:
    """Make, list and revoke API keys."""


@keys.command()
@click.argument("name", callback=_printable)
@click.option("--tenant", callback=_tenant, default=DEFAULT_TENANT, show_default=True)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    default=[Scope.READ.value, Scope.RUN.value],
    show_default=True,
    help="What it is for; may be given several times.",
)
@click.option("--expires-in", callback=_seconds, metavar="DURATION", help='"90d", say; left out, never.')
@options.database
def create(
    name: str,
    tenant: str,
    scopes: Sequence[str],
    expires_in: float | None,
    config: Path | None,
    dsn: str | None,
    data_dir: Path,
) -> None:
    """Make a key for what NAME says. The key itself is printed once and cannot be shown again."""

    async def make(store: KeyStore) -> tuple[ApiKey, str]:
        return await store.create(tenant, name, map(Scope, scopes), expires_in_s=expires_in)

    key, secret = _with_store(options.settings_of(config, dsn=dsn), data_dir, make)
    until = f" until {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else ""
    click.echo(f"a key of tenant {key.tenant} for {', '.join(key.scopes)}{until}:", err=True)
    click.echo(secret)


@keys.command("list")
@click.option("--tenant", callback=_tenant, help="Only this tenant's.")
@click.option("--json", "as_json", is_flag=True, help="One key per line, as JSON.")
@options.database
def list_(tenant: str | None, as_json: bool, config: Path | None, dsn: str | None, data_dir: Path) -> None:
    """List the keys, revoked and expired ones too."""

    async def read(store: KeyStore) -> list[ApiKey]:
        return await store.list(tenant, skip=0, take=_SHOWN_AT_MOST)

    found = _with_store(options.settings_of(config, dsn=dsn), data_dir, read)
    if as_json:
        for key in found:
            click.echo(msgspec.json.encode(key))
    else:
        click.echo("\n".join(_lines(found)))


@keys.command()
@click.argument("key")
@options.database
def revoke(key: str, config: Path | None, dsn: str | None, data_dir: Path) -> None:
    """Revoke KEY, named by its prefix or id. Hosts refuse it within auth.cache_ttl."""

    async def end(store: KeyStore) -> ApiKey:
        return await store.revoke(None, prefix_of(key) or key)

    revoked = _with_store(options.settings_of(config, dsn=dsn), data_dir, end)
    click.echo(f"revoked {revoked.prefix} ({revoked.name}) of tenant {revoked.tenant}")


def _with_store(settings: Settings, data_dir: Path, work: Callable[[KeyStore], Awaitable[T]]) -> T:
    async def opened() -> T:
        async with _store(settings, data_dir) as store:
            return await work(store)

    return asyncio.run(opened())


@asynccontextmanager
async def _store(settings: Settings, data_dir: Path) -> AsyncIterator[KeyStore]:
    options.require_data(settings.dsn, data_dir)
    async with open_database(settings.dsn, data_dir) as dsn, closing_pool(dsn, max_size=2) as pool:
        yield KeyStore(pool)


def _lines(found: Sequence[ApiKey]) -> Iterator[str]:
    """Columns as wide as they need to be: a prefix that is cut off is of no use."""
    rows: list[tuple[str, ...]] = [
        ("prefix", "tenant", "scopes", "created", "expires", "last used", "revoked", "name")
    ]
    for key in found:
        moments = (key.created_at, key.expires_at, key.last_used_at, key.revoked_at)
        told = [f"{moment:%Y-%m-%d %H:%M}" if moment else "-" for moment in moments]
        rows.append((key.prefix, key.tenant, ",".join(key.scopes), *told, key.name))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
