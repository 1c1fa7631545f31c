"""Write into README.md what its curl command prints."""

import asyncio
import re
import subprocess
import tempfile
from pathlib import Path

from app.cli.service_process import ServiceProcess

README = Path(__file__).resolve().parents[1] / "README.md"
ADDRESS = "http://127.0.0.1:8080"
DEMO = ("--app", "ops/demo/app.py", "--config", "ops/demo/tracon.toml")

_EXAMPLE = re.compile(r"(```sh\ncurl .*?```\n\n```\n)(.*?)(\n```\n)", re.DOTALL)
_DIFFERS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "RUN"),
    (r'"at":"[^"]+"', '"at":"AT"'),
    (r'"host":"[^"]+"', '"host":"HOST"'),
    (r"call_[0-9a-f]{24}", "CALL"),
    (r'"call_key":"[^"]+"', '"call_key":"KEY"'),
    (r'"duration_ms":\d+', '"duration_ms":0'),
)


def printed(url: str) -> str:
    """What the command of the README prints when it is sent to the service at `url`, shortened."""
    command = re.search(r"```sh\n(curl .*?)```", README.read_text(), re.DOTALL)
    assert command
    here = command[1].replace(ADDRESS, url)
    done = subprocess.run(("sh", "-c", here), capture_output=True, text=True, check=True, timeout=30)
    return _shortened(done.stdout.strip().split("\n\n"))


def shown() -> str:
    """What the README says that it prints."""
    example = _EXAMPLE.search(README.read_text())
    assert example
    return example[2]


def comparable(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, instead in _DIFFERS:
        text = re.sub(pattern, instead, text)
    return text


def _shortened(frames: list[str]) -> str:
    """Without the middle of the answer's text: a frame per word says nothing new."""
    words = [n for n, frame in enumerate(frames) if "event: TextDelta" in frame and '"step":2' in frame]
    left_out = f"[frames {words[1] + 1} to {words[-1]} are left out here: one word each]"
    return "\n\n".join((*frames[: words[1]], left_out, *frames[words[-1] :]))


async def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        where = ("--port", "0", "--data-dir", f"{scratch}/data")
        service = await ServiceProcess.start(*DEMO, *where, log=Path(scratch, "log"))
        try:
            output = await asyncio.to_thread(printed, service.url)
        finally:
            await service.close()
    README.write_text(_EXAMPLE.sub(lambda found: found[1] + output + found[3], README.read_text()))


if __name__ == "__main__":
    asyncio.run(main())
