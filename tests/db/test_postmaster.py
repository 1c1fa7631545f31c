"""What a server says of itself, and when not to believe it."""

import os
import subprocess
from pathlib import Path

from app.db import postmaster

READY = "{pid}\n/data\n0\n5432\n{socket_dir}\n\n 1 2\nready   \n"


def say(cluster: Path, pid: int) -> None:
    (cluster / "postmaster.pid").write_text(READY.format(pid=pid, socket_dir=cluster))
    (cluster / ".s.PGSQL.5432.lock").write_text(f"{pid}\n/data\n")


def test_a_zombie_is_dead_and_its_lock_files_go(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/true"], stdout=subprocess.PIPE) as zombie:
        assert zombie.stdout
        zombie.stdout.read()  # ended, and not waited for yet
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        say(tmp_path, zombie.pid)
        assert postmaster.find(tmp_path) is None
        postmaster.forget_the_dead(tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_a_stranger_with_the_same_pid_is_not_the_server(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        say(tmp_path, stranger.pid)
        assert postmaster.find(tmp_path) is None
        stranger.kill()


def test_a_file_caught_half_written_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text("")
    assert postmaster.find(tmp_path) is None
    (tmp_path / "postmaster.pid").write_text(f"{os.getpid()}\n/data\n")
    assert postmaster.recorded(tmp_path) == postmaster.Postmaster(os.getpid(), "", ready=False)


def test_the_lock_of_another_server_s_socket_stays(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        say(tmp_path, stranger.pid)
        (tmp_path / ".s.PGSQL.5432.lock").write_text("1\n/elsewhere\n")
        postmaster.forget_the_dead(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [".s.PGSQL.5432.lock"]
        stranger.kill()
