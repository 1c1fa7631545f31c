"""`python -m ops.interop`: the npm package `openai` against a service of its own. Needs node and npm."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from app.cli.service_process import ServiceProcess

_HERE = Path(__file__).parent
_ARGUMENTS = ("--app", str(_HERE / "application.py"), "--config", str(_HERE / "tracon.toml"), "--port", "0")
_RATE = "TRACON_RATE_LIMIT__REQUESTS_PER_SECOND"
_WITHIN_S = 300.0


async def main() -> int:
    """The status of the suite."""
    if not (shutil.which("node") and shutil.which("npm")):
        sys.exit("This needs node and npm.")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for file in ("package.json", "chat.test.mjs"):
            shutil.copy(_HERE / file, folder)
        await _run(folder, "npm", "install", "--no-audit", "--no-fund", "--silent")
        return await _against_services(folder)


async def _against_services(folder: Path) -> int:
    """One that takes what comes, and one that takes one request a second."""
    where = ("--data-dir", str(folder / "data"))
    service = await ServiceProcess.start(*_ARGUMENTS, *where, log=folder / "log")
    try:
        os.environ[_RATE] = "1"
        limited = await ServiceProcess.start(*_ARGUMENTS, *where, log=folder / "limited.log")
        try:
            os.environ |= {"TRACON_URL": service.url, "TRACON_LIMITED_URL": limited.url}
            return await _run(folder, "node", "--test", "--test-reporter=spec", "chat.test.mjs", check=False)
        finally:
            await limited.close()
    finally:
        await service.close()


async def _run(folder: Path, *command: str, check: bool = True) -> int:
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=folder, check=check, timeout=_WITHIN_S, stdin=subprocess.DEVNULL
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
