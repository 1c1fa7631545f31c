"""The file as TOML or JSON, the environment above it, a profile below it."""

from pathlib import Path

import pytest

from app.settings import ChainSettings, ServerSettings, StoreSettings
from app.settings.errors import Problem
from app.settings.load import Settings, SettingsError, load_settings
from domain.agent import AgentDefinition, Link, ModelOptions
from tests.settings.files import Desk


def test_without_a_file_everything_has_its_default() -> None:
    assert load_settings(None, {}) == Settings()


def test_a_toml_file_sets_what_it_names_and_leaves_the_rest(desk: Desk) -> None:
    settings = desk.load("""
        [server]
        port = 9000
        [chain]
        first_content_timeout = "1500ms"
        call_timeout = "00:05:00"
    """)
    assert settings.server == ServerSettings(port=9000)
    assert settings.chain == ChainSettings(first_content_timeout=1.5, call_timeout=300.0)
    assert settings.store == StoreSettings()


def test_a_json_file_says_the_same_as_a_toml_file(desk: Desk) -> None:
    toml = desk.load('[store]\noutage_patience = "10s"\nstrict = true')
    json = desk.load('{"store": {"outage_patience": "10s", "strict": true}}', name="tracon.json")
    assert json == toml


def test_a_byte_order_mark_is_no_part_of_the_file(desk: Desk) -> None:
    assert desk.load('\ufeff{"server": {"port": 1}}', name="t.json").server.port == 1


def test_an_agent_is_named_by_its_key(desk: Desk) -> None:
    settings = desk.load("""
        [providers.primary]
        type = "openai"
        base_url = "http://127.0.0.1:9001/v1"
        api_key_env = "PRIMARY_KEY"
        [providers.primary.models.small]
        supports_tools = true
        context_window = 128000
        input_per_million = "0.15"
        output_per_million = "0.60"
        [agents.support]
        instructions = "Answer briefly."
        provider = "primary"
        model = "small"
        fallbacks = [{ provider = "backup", model = "big" }]
        tools = ["get_order"]
        options = { temperature = 0, stop = ["END"] }
        provider_settings = { service_tier = "flex" }
    """)
    assert settings.agents == {
        "support": AgentDefinition(
            name="support",
            instructions="Answer briefly.",
            provider="primary",
            model="small",
            fallbacks=(Link(provider="backup", model="big"),),
            tools=("get_order",),
            options=ModelOptions(temperature=0.0, stop=("END",)),
            provider_settings={"service_tier": "flex"},
        )
    }
    assert settings.providers["primary"].models["small"].context_window == 128000


def test_the_environment_stands_above_the_file(desk: Desk) -> None:
    settings = desk.load(
        '[server]\nport = 1\nhost = "::1"',
        env={
            "TRACON_SERVER__PORT": "9000",
            "TRACON_STORE__OUTAGE_PATIENCE": "10s",
            "TRACON_STORE__STRICT": "true",
            "TRACON_AGENT_GRAPH__MAX_TOTAL_COST": "2.50",
            "TRACON_DSN": "postgresql://db/tracon",
            "PATH": "/bin",
        },
    )
    assert settings.server == ServerSettings(port=9000, host="::1")
    assert settings.store == StoreSettings(outage_patience=10.0, strict=True)
    assert str(settings.agent_graph.max_total_cost) == "2.50"
    assert settings.dsn == "postgresql://db/tracon"


def test_an_empty_variable_is_not_set(desk: Desk) -> None:
    assert desk.load(env={"TRACON_SERVER__PORT": "", "TRACON_DSN": ""}) == Settings()


def test_a_variable_reaches_into_names_that_it_cannot_spell(desk: Desk) -> None:
    settings = desk.load(
        '[providers.Big-One]\ntype = "scripted"\n[providers.Big-One.models."m-1.5"]',
        env={"TRACON_PROVIDERS__BIG_ONE__MODELS__M_1_5__CONTEXT_WINDOW": "9"},
    )
    assert settings.providers["Big-One"].models["m-1.5"].context_window == 9


def test_a_variable_holds_lists_and_objects_as_json(desk: Desk) -> None:
    settings = desk.load(
        env={
            "TRACON_AGENTS__A": '{"provider": "p", "model": "5"}',
            "TRACON_AGENTS__B__PROVIDER": "p",
            "TRACON_AGENTS__B__MODEL": "5",
            "TRACON_AGENTS__B__TOOLS": '["one", "two"]',
            "TRACON_AGENTS__B__PROVIDER_SETTINGS__TOP_K": "5",
            "TRACON_AGENTS__B__PROVIDER_SETTINGS__USER": "me",
        }
    )
    assert settings.agents["a"] == AgentDefinition(name="a", provider="p", model="5")
    assert settings.agents["b"] == AgentDefinition(
        name="b",
        provider="p",
        model="5",
        tools=("one", "two"),
        provider_settings={"top_k": 5, "user": "me"},
    )


def test_what_the_environment_has_wrong_is_told_with_the_variables_name(desk: Desk) -> None:
    assert desk.problems(env={"TRACON_SERVER__PORT": "many", "TRACON_TURN__MAX_STEP": "3"}) == (
        Problem(source="TRACON_SERVER__PORT", key="server.port", reason="expected `int`, got `str`"),
        Problem(
            source="TRACON_TURN__MAX_STEP",
            key="turn.max_step",
            reason="is unknown; did you mean 'max_steps'?",
        ),
    )


def test_a_variable_with_one_underscore_too_few_is_not_silently_ignored(desk: Desk) -> None:
    problems = desk.problems(env={"TRACON_SERVER_PORT": "9000"})
    assert [str(problem) for problem in problems] == [
        "TRACON_SERVER_PORT: sets nothing; did you mean TRACON_SERVER__PORT?"
    ]


def test_variables_that_kubernetes_makes_of_services_are_none_of_ours(desk: Desk) -> None:
    env = {"TRACON_SERVER_PORT": "tcp://10.0.0.7:8080", "TRACON_PORT_8080_TCP_PORT": "8080"}
    assert desk.load(env=env) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("t.toml", "[server", "is not valid TOML: "),
        ("t.toml", "[server]\n[server]", "is not valid TOML: "),
        ("t.json", '{"server": }', "is not valid JSON: "),
        ("t.json", '{"server": {}, "server": {}}', "is not valid JSON: 'server' is given twice"),
        ("t.json", '{"server": {"port": NaN}}', "is not valid JSON: NaN is not a number"),
        ("t.json", "[]", "must hold an object of sections"),
        ("t.yaml", "server:", "a settings file is named .toml or .json"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(desk: Desk, name: str, text: str, reason: str) -> None:
    (problem,) = desk.problems(text, name=name)
    assert problem.source == str(desk.file)
    assert problem.key == ""
    assert problem.reason.startswith(reason)


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"t\.toml: is not valid TOML"):
        load_settings(tmp_path / "t.toml", {})


@pytest.mark.parametrize(("name", "reason"), [("none.toml", "No such file"), ("", "named .toml or .json")])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        load_settings(tmp_path / name, {})


def test_the_profile_is_taken_from_the_caller_then_the_environment_then_the_file(desk: Desk) -> None:
    file, env = 'profile = "production"', {"TRACON_PROFILE": "production"}
    assert desk.load(file).profile == "production"
    assert desk.load(env=env).profile == "production"
    assert desk.load(file, env={"TRACON_PROFILE": "default"}).profile == "default"
    assert desk.load(file, env=env, profile="default").profile == "default"


def test_an_unknown_profile_is_refused(desk: Desk) -> None:
    assert desk.refusals('profile = "prod"') == {"profile": "expected one of default, production"}
