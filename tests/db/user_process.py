"""A process that uses an embedded server: says which one it got, and holds on until told to let go."""

import asyncio
import sys
from pathlib import Path

from app.db import embedded, postmaster

_SETTINGS = {"fsync": "off"}


async def main(data_dir: Path, bin_dir: Path | None) -> None:
    server = await embedded.start(data_dir, settings=_SETTINGS, bin_dir=bin_dir)
    found = postmaster.find(data_dir / "cluster")
    print(found.pid if found else "none", flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.read)
    print(await server.close(), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
