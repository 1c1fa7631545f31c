"""Running Postgres as an unprivileged user when the service is root, for Postgres refuses to be root.

Nothing on the way to the program or to its data is opened up to that user by changing its mode. If the
user cannot get there by its own rights, it is given one capability more, the least that does; where
capabilities cannot be given, the program runs in a user namespace in which root looks like that user.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ACCOUNTS = ("postgres", "nobody")
_PACKAGES = Path(__file__).resolve().parents[2]

_NO_CAPABILITY = -1
_CAP_DAC_OVERRIDE = 1
_CAP_DAC_READ_SEARCH = 2
_PR_SET_SECUREBITS = 28
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True)
class Way:
    """How to run a program: `prefix` goes before its arguments, `uid` and `gid` own its files."""

    prefix: tuple[str, ...]
    uid: int
    gid: int


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """A command that runs `main` of one of our modules in an interpreter without site packages."""
    boot = f"import sys; sys.path.append(sys.argv.pop(1)); from {module} import main; main()"
    return (sys.executable, "-I", "-S", "-c", boot, str(_PACKAGES), *arguments)


def ways(owner: int | None) -> Iterator[Way]:
    """Ways to try, the least privileged first; none if the system has no suitable account.

    `owner` is the uid that existing data belongs to.
    """
    if os.geteuid() != 0:
        yield Way((), os.geteuid(), os.getegid())
        return
    account = _account(owner)
    if account is None:
        return
    uid, gid = account
    if owner != 0:
        for capability in _capabilities():
            yield Way(python(__name__, str(uid), str(gid), str(capability)), uid, gid)
    if owner in (None, 0) and (unshare := shutil.which("unshare")):
        yield Way((unshare, "--user", f"--map-user={uid}", f"--map-group={gid}", "--"), 0, 0)


def works(way: Way, program: Path, *folders: Path) -> bool:
    """Whether the program can be run this way and can enter these folders."""
    script = 'program=$1; shift; for folder; do cd "$folder" || exit; done; exec "$program" --version'
    probe = ("/bin/sh", "-c", script, "sh", str(program), *map(str, folders))
    done = subprocess.run((*way.prefix, *probe), capture_output=True, check=False, cwd="/")  # noqa: S603
    return done.returncode == 0


def _account(owner: int | None) -> tuple[int, int] | None:
    import pwd  # absent on Windows, where nobody is root

    for entry in (owner, *_ACCOUNTS):
        try:
            if isinstance(entry, str):
                found = pwd.getpwnam(entry)
            elif entry:
                found = pwd.getpwuid(entry)
            else:
                continue
        except KeyError:
            continue
        return found.pw_uid, found.pw_gid
    return None


def _capabilities() -> tuple[int, ...]:
    if sys.platform != "linux":
        return (_NO_CAPABILITY,)
    return (_NO_CAPABILITY, _CAP_DAC_READ_SEARCH, _CAP_DAC_OVERRIDE)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def _become(uid: int, gid: int, capability: int) -> None:
    """Change to the user for good, keeping that one capability across exec."""
    libc = ctypes.CDLL(None, use_errno=True)
    keep = capability != _NO_CAPABILITY
    if keep:
        # Else setuid would take every capability away, and access(2), with which Postgres looks for its
        # own files, would answer as if the one that is left were not there.
        _succeed(libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0))
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    if keep:
        mask = 1 << capability
        header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
        sets = (_CapabilitySets * 2)(_CapabilitySets(mask, mask, mask), _CapabilitySets(0, 0, 0))
        _succeed(libc.capset(ctypes.byref(header), sets))
        _succeed(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability, 0, 0))


def _succeed(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main() -> None:
    uid, gid, capability, *command = sys.argv[1:]
    _become(int(uid), int(gid), int(capability))
    os.execv(command[0], command)  # noqa: S606
