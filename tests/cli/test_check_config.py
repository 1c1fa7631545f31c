"""`tracon check-config` and `tracon version`."""

import platform
from importlib.metadata import version
from pathlib import Path

from tests.cli.command import DEMO, tracon


def test_what_fits_together_is_summed_up() -> None:
    done = tracon("check-config", *DEMO)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "providers: script (scripted: clerk, parrot, concierge, returns, researcher, writer, storyteller,"
        " promiser),"
        " shaky (scripted: clerk), reader (scripted: summarizer, judge)",
        "agents: careful (shaky/clerk), concierge (script/concierge), echo (script/parrot),"
        " patient (script/promiser), researcher (script/researcher), returns (script/returns),"
        " slow (script/storyteller), support (script/clerk), writer (script/writer)",
        "workflows: article (sequential)",
        "tools: cancel_order (destructive), get_order (read), refund_order (destructive),"
        " send_email (external)",
        "everything fits together",
    ]


def test_every_problem_of_agents_and_tools_is_told_at_once(tmp_path: Path) -> None:
    config = tmp_path / "tracon.toml"
    config.write_text(
        '[providers.script]\ntype = "scripted"\n'
        '[agents.a]\nprovider = "scrpt"\nmodel = "m"\n'
        '[agents.b]\nprovider = "script"\nmodel = "m"\ntools = ["get_ordr"]\n'
    )
    done = tracon("check-config", "--config", str(config), "--app", DEMO[1])
    assert (done.returncode, done.stdout) == (2, "")
    problems = done.stderr.splitlines()
    assert len(problems) == 2
    assert "agents.a.provider" in problems[0]
    assert "'scrpt'" in problems[0]
    assert "agents.b.tools" in problems[1]
    assert "'get_ordr'" in problems[1]


def test_an_app_that_does_not_load_is_told_with_its_line(tmp_path: Path) -> None:
    app = tmp_path / "broken.py"
    app.write_text("from tracon import tool\n\nraise RuntimeError('no')\n")
    done = tracon("check-config", "--app", str(app))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{app}: line 3 ")
    assert len(done.stderr.splitlines()) == 1


def test_a_key_that_this_machine_lacks_is_a_warning(tmp_path: Path) -> None:
    """Settings are checked where the keys are not, for instance before a deployment."""
    config = tmp_path / "tracon.toml"
    config.write_text('[providers.primary]\ntype = "openai"\napi_key_env = "A_KEY_THAT_IS_NOT_SET"\n')
    done = tracon("check-config", "--config", str(config))
    assert done.returncode == 0
    assert "warning: provider 'primary': its key is missing" in done.stderr


def test_a_tenants_key_that_this_machine_lacks_is_a_warning(tmp_path: Path) -> None:
    """BREAK-1: it names the tenant, whose calls no other key is for."""
    config = tmp_path / "tracon.toml"
    config.write_text(
        '[providers.p]\ntype = "openai"\nbase_url = "http://127.0.0.1:1/v1"\n'
        '[providers.p.tenants.acme]\napi_key_env = "NO_SUCH_KEY_OF_ACME"\n'
    )
    done = tracon("check-config", "--config", str(config))
    assert done.returncode == 0
    assert "provider 'p', tenant 'acme': its key is missing" in done.stderr
    assert "NO_SUCH_KEY_OF_ACME" in done.stderr


def test_a_dsn_that_cannot_be_one_is_refused_without_repeating_it() -> None:
    done = tracon("check-config", TRACON_DSN="mysql://root:secret@localhost/db")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "settings: dsn: is not of the form postgresql://user@host:port/database\n"


def test_version_names_what_would_run() -> None:
    done = tracon("version")
    assert done.returncode == 0
    own, python, postgres = done.stdout.splitlines()
    assert own == f"tracon {version('tracon')}"
    assert python == f"Python {platform.python_version()}"
    assert postgres.startswith("PostgreSQL 18 in /")
