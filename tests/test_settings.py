"""Settings: which source wins, what a stranger's file may do, what is said about every mistake."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.config import MCPServerSettings, ProviderSettings, SandboxSettings
from daiku.domain.errors import UsageError
from daiku.models.table import PROVIDERS, LLMSettings
from daiku.settings import every_key, home, load, private_file, secrets_of, trust, user_file
from daiku.settings.config import Config, StorageSettings, WorkSettings
from tests.cases import for_each
from tests.conftest import ROOT
from tests.test_architecture import modules


def user_says(environ: dict[str, str], toml: str) -> Path:
    path = user_file(environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(toml, encoding="utf-8")
    return path


def workspace_says(workspace: Path, toml: str) -> Path:
    path = workspace / ".daiku" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(toml, encoding="utf-8")
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "DAIKU_HOME": str(tmp_path / "state")}


def complaint(**layers: Any) -> str:
    with pytest.raises(UsageError) as wrong:
        load(workspace=None, trusted=True, **layers)
    message = wrong.value.failure.message
    assert "\n" not in message
    return message


# --- which source wins


def test_without_any_source_everything_is_the_default(environ: dict[str, str]) -> None:
    loaded = load(workspace=None, trusted=False, environ=environ)
    assert loaded.config == Config()
    assert loaded.origins == {}


def test_each_source_wins_over_those_below_it(environ: dict[str, str], workspace: Path) -> None:
    names = ("compatible", "lmstudio", "ollama", "gemini", "openai")
    user = user_says(environ, f'[llm]\nprovider = "{names[0]}"\n')
    own = workspace_says(workspace, f'[llm]\nprovider = "{names[1]}"\n')
    layers: list[tuple[dict[str, Any], str, str]] = [
        ({}, names[1], str(own)),
        ({"editor": {"llm": {"provider": names[2]}}}, names[2], "editor"),
        (
            {"environ": {**environ, "DAIKU_LLM__PROVIDER": names[3]}},
            names[3],
            "environment DAIKU_LLM__PROVIDER",
        ),
        ({"overrides": {"llm": {"provider": names[4]}}}, names[4], "command line"),
    ]
    given: dict[str, Any] = {"workspace": None, "trusted": True, "environ": environ}
    assert load(**given).origins["llm.provider"] == str(user)
    given["workspace"] = workspace
    for layer, provider, origin in layers:
        given |= layer
        loaded = load(**given)
        assert (loaded.config.llm.provider, loaded.origins["llm.provider"]) == (provider, origin)


def test_tables_are_merged_key_by_key(environ: dict[str, str], workspace: Path) -> None:
    user_says(environ, "[llm.openai]\ncontext_length = 9\n[llm.openai.price.a]\ninput = 1\n")
    workspace_says(workspace, '[llm.openai]\neffort = "low"\n[llm.openai.price.b]\ninput = 2\n')
    openai = load(workspace=workspace, trusted=True, environ=environ).config.llm.openai
    assert (openai.context_length, openai.effort, set(openai.price)) == (9, "low", {"a", "b"})
    assert openai.api_key_env == "OPENAI_API_KEY"


def test_an_editor_may_write_camel_case_and_its_blanks_mean_not_set(environ: dict[str, str]) -> None:
    user_says(environ, '[llm]\nmodel = "mine"\n')
    editor: Any = {"limits": {"maxRounds": 7}, "llm": {"model": "", "fallbackModel": None}}
    config = load(workspace=None, trusted=True, environ=environ, editor=editor).config
    assert (config.limits.max_rounds, config.llm.model) == (7, "mine")


# --- environment


@pytest.mark.parametrize(
    ("name", "value", "key", "expected"),
    [
        ("ANTHROPIC_BASE_URL", "http://a", "llm.anthropic.base_url", "http://a"),
        ("OPENAI_BASE_URL", "http://a/v1", "llm.openai.base_url", "http://a/v1"),
        ("GEMINI_BASE_URL", "http://a", "llm.gemini.base_url", "http://a"),
        ("LMSTUDIO_BASE_URL", "http://a/v1", "llm.lmstudio.base_url", "http://a/v1"),
        ("GITHUB_API_URL", "https://ghe/api", "github.api_url", "https://ghe/api"),
        ("GITLAB_API_URL", "https://gl/api", "gitlab.api_url", "https://gl/api"),
        ("TRACE_OTLP_ENDPOINT", "http://o:4318", "trace.otlp_endpoint", "http://o:4318"),
        ("OLLAMA_HOST", "box", "llm.ollama.base_url", "http://box:11434"),
        ("OLLAMA_HOST", "0.0.0.0", "llm.ollama.base_url", "http://127.0.0.1:11434"),
        ("OLLAMA_HOST", ":8080", "llm.ollama.base_url", "http://127.0.0.1:8080"),
        ("OLLAMA_HOST", "https://box/ollama/", "llm.ollama.base_url", "https://box:443/ollama"),
        ("DAIKU_LIMITS__MAX_COST", "1.5", "limits.max_cost", 1.5),
        ("DAIKU_SANDBOX__NETWORK", "true", "sandbox.network", True),
        (
            "DAIKU_APPROVALS__COMMANDS_ALLOW",
            "git status, ls",
            "approvals.commands_allow",
            ("git status", "ls"),
        ),
        ("DAIKU_APPROVALS__COMMANDS_ALLOW", '["a, b"]', "approvals.commands_allow", ("a, b",)),
        ("DAIKU_LLM__OPENAI__HEADERS", '{"X-A": "b"}', "llm.openai.headers", {"X-A": "b"}),
    ],
)
def test_a_variable_sets_its_key(
    environ: dict[str, str], name: str, value: str, key: str, expected: object
) -> None:
    loaded = load(workspace=None, trusted=True, environ={**environ, name: value})
    here: Any = loaded.config
    for part in key.split("."):
        here = getattr(here, part)
    assert here == expected
    assert loaded.origins[key] == f"environment {name}"


def test_an_empty_variable_is_not_set(environ: dict[str, str]) -> None:
    empty = {"OPENAI_BASE_URL": "", "DAIKU_LIMITS__MAX_ROUNDS": " ", "OPENAI_API_KEY": ""}
    assert load(workspace=None, trusted=True, environ={**environ, **empty}).config == Config()


def test_a_daiku_variable_wins_over_the_usual_one(environ: dict[str, str]) -> None:
    both = {"OPENAI_BASE_URL": "http://usual", "DAIKU_LLM__OPENAI__BASE_URL": "http://own"}
    config = load(workspace=None, trusted=True, environ={**environ, **both}).config
    assert config.llm.openai.base_url == "http://own"


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("OPENAI_API_KEY", "openai"),
        ("GEMINI_API_KEY", "gemini"),
        ("GOOGLE_API_KEY", "gemini"),
        ("COMPATIBLE_API_KEY", "compatible"),
    ],
)
def test_a_key_is_read_from_its_variable(environ: dict[str, str], variable: str, provider: str) -> None:
    loaded = load(workspace=None, trusted=True, environ={**environ, variable: "sk-secret-1"})
    assert getattr(loaded.config.llm, provider).api_key.get_secret_value() == "sk-secret-1"
    assert loaded.origins[f"llm.{provider}.api_key"] == f"environment {variable}"
    assert "sk-secret-1" not in repr(loaded)


def test_of_two_variables_for_one_key_the_services_own_counts(environ: dict[str, str]) -> None:
    both = {"GOOGLE_API_KEY": "sk-of-everything", "GEMINI_API_KEY": "sk-of-gemini"}
    loaded = load(workspace=None, trusted=True, environ={**environ, **both})
    assert loaded.config.llm.gemini.api_key.get_secret_value() == "sk-of-gemini"
    assert loaded.origins["llm.gemini.api_key"] == "environment GEMINI_API_KEY"


def test_another_variable_may_hold_the_key(environ: dict[str, str]) -> None:
    user_says(environ, '[llm.openai]\napi_key_env = "WORK_KEY"\n')
    config = load(
        workspace=None, trusted=True, environ={**environ, "WORK_KEY": "k1", "OPENAI_API_KEY": "k2"}
    ).config
    assert config.llm.openai.api_key.get_secret_value() == "k1"


def test_an_editor_may_hand_over_a_key_that_no_variable_holds() -> None:
    editor: Any = {"llm": {"openai": {"api_key": "from-editor"}}}
    assert (
        load(
            workspace=None, trusted=True, environ={}, editor=editor
        ).config.llm.openai.api_key.get_secret_value()
        == "from-editor"
    )


@for_each("header", ["Authorization", "authorization", "X-Api-Key"])
def test_a_key_in_the_headers_of_a_service_is_a_secret(header: str) -> None:
    openai = ProviderSettings(headers={header: "Bearer abcdefgh1234", "X-Team": "the-red-team"})
    config = Config(llm=LLMSettings(openai=openai))
    assert secrets_of(config, {}) == ("Bearer abcdefgh1234",)


def test_everything_that_looks_like_a_secret_is_known_to_the_redactor(environ: dict[str, str]) -> None:
    held = {
        **environ,
        "OPENAI_API_KEY": "sk-12345678",
        "GITHUB_TOKEN": "ghp_12345678",
        "DB_PASSWORD": "hunter2hunter2",
        "MONKEY_HOME": "/home/someone/monkey",
    }
    config = load(workspace=None, trusted=True, environ=held).config
    assert set(secrets_of(config, held)) == {"sk-12345678", "ghp_12345678", "hunter2hunter2"}


# --- mistakes


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('[llm]\nmodle = "x"', "llm.modle is not a setting (did you mean llm.model?)"),
        ('model = "x"', "model is not a setting (did you mean llm.model?)"),
        ("[limit]\nmax_rounds = 3", "limit is not a setting (did you mean limits?)"),
        ('[llm.opnai]\nbase_url = "x"', "llm.opnai is not a setting (did you mean llm.openai?)"),
        ('[limits]\nmax_rounds = "many"', "limits.max_rounds must be a whole number, not 'many'"),
        ("[limits]\nmax_rounds = -1", "limits.max_rounds must be at least 0, not -1"),
        ("[limits]\nmax_cost = nan", "limits.max_cost must be a finite number"),
        ('[approvals]\nedit = "yes"', "approvals.edit must be one of 'allow', 'ask' or 'deny', not 'yes'"),
        ('[approvals]\ncommands_allow = "git"', "approvals.commands_allow must be a list, not 'git'"),
        ("[llm]\nmodel = 3", "llm.model must be text, not 3"),
        ("llm = 3", "llm must be a table, not 3"),
        ("[sandbox]\nnetwork = 7", "sandbox.network must be true or false, not 7"),
        ('[llm.openai]\nbase_url = "api.example.com"', "llm.openai.base_url must be an address such as"),
        ('[llm.openai]\nbase_url = "ftp://x"', "llm.openai.base_url must be an address such as"),
        ("[llm.openai.price.gpt]\ninptu = 1", "is not a setting (did you mean input?)"),
        ('[[mcp_servers]]\ncomand = ["x"]', "mcp_servers[0].comand is not a setting (did you mean command?)"),
        ('[guardrails]\nregex_blocks = ["("]', "guardrails.regex_blocks: '(' is not a regular expression"),
        ("[guardrails]\nsimilarity_warn = 0.9", "guardrails.similarity_warn must not be above"),
        ('[llm.openai]\napi_key = "sk-1"', "a file never holds a key"),
        ("[llm", "is not TOML"),
    ],
)
def test_a_mistake_is_one_line_with_file_key_and_what_is_right(
    environ: dict[str, str], toml: str, said: str
) -> None:
    path = user_says(environ, toml)
    message = complaint(environ=environ)
    assert said in message
    assert str(path) in message
    assert "sk-1" not in message


def test_several_mistakes_are_told_at_once(environ: dict[str, str]) -> None:
    user_says(environ, '[limits]\nmax_rounds = "x"\n')
    message = complaint(environ={**environ, "DAIKU_LLM__MODLE": "m"})
    assert "limits.max_rounds" in message
    assert "DAIKU_LLM__MODLE is not a setting (did you mean DAIKU_LLM__MODEL?)" in message


@pytest.mark.parametrize(
    "toml", ["banana = 1", "[llm]\nfoo = 1", "[banana]\nsplit = 1", "[limits]\ncolor = 1"]
)
def test_nothing_is_suggested_for_a_name_that_resembles_none(environ: dict[str, str], toml: str) -> None:
    """A23.5"""
    user_says(environ, toml)
    assert "did you mean" not in complaint(environ=environ)


@pytest.mark.parametrize("name", ["DAIKU_BANANA__SPLIT", "DAIKU_DEBUG__LEVEL", "DAIKU_LLM__FOO"])
def test_the_prefix_of_a_variable_resembles_nothing(environ: dict[str, str], name: str) -> None:
    """A23.5"""
    message = complaint(environ={**environ, name: "1"})
    assert f"{name} is not a setting" in message
    assert "did you mean" not in message


def test_a_wrong_value_that_may_be_secret_is_not_repeated(environ: dict[str, str]) -> None:
    assert "sk-99" not in complaint(environ={**environ, "DAIKU_LLM__OPENAI__HEADERS": '["sk-99"]'})


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x = '" + b"a" * 1_100_000 + b"'"])
def test_a_file_that_is_no_text_or_too_large_is_named(environ: dict[str, str], content: bytes) -> None:
    path = user_file(environ)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert str(path) in complaint(environ=environ)


def test_a_pipe_in_place_of_the_file_does_not_hang(environ: dict[str, str]) -> None:
    path = user_file(environ)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert "must be a plain TOML file" in complaint(environ=environ)


# --- strangers


FORBIDDEN = [
    '[llm.openai]\nbase_url = "https://evil.example/v1"',
    '[llm.openai]\napi_key_env = "AWS_SECRET_ACCESS_KEY"',
    '[llm.openai]\nheaders = { X = "y" }',
    "[llm.openai.price.gpt]\ninput = 0",
    '[llm]\nprovider = "scripted"',
    '[llm]\nmodel = "scripted/evil.jsonl"',
    '[llm]\nfallback_model = "scripted/evil.jsonl"',
    '[router]\nmodel = "scripted/evil.jsonl"',
    '[agents.coder]\nmodel = "scripted/evil.jsonl"',
    '[router]\nmodel = "openai/o3-mini"',
    '[router]\nrules = [[".", ["runner", "coder"]]]',
    '[[mcp_servers]]\nmcp_server_name = "x"\ncommand = ["evil"]',
    '[approvals]\ncommand = "allow"',
    '[approvals]\ncommands_allow = ["*"]',
    '[sandbox]\nmode = "off"',
    "[sandbox]\nnetwork = true",
    '[sandbox]\nnetwork = "yes"',
    '[sandbox]\nwrite = ["/"]',
    '[trace]\notlp_endpoint = "https://evil.example"',
    "[trace]\ncontent = true",
    '[research]\nbase_url = "https://evil.example"',
    '[research]\napi_key_env = "GITHUB_TOKEN"',
    '[github]\napi_url = "https://evil.example"',
    '[gitlab]\ntoken_env = "AWS_SECRET_ACCESS_KEY"',
    '[work.labels]\ntodo = "x"',
    "[limits]\nmax_rounds = 0",
    "[limits]\nmax_rounds = 500",
    "[limits]\nmax_replans = 3",
    "[guardrails]\nsimilarity_block = 0.9",
    '[playbook]\nlearn = "auto"',
]


@pytest.mark.parametrize("toml", FORBIDDEN)
def test_an_untrusted_workspace_cannot_set(environ: dict[str, str], workspace: Path, toml: str) -> None:
    path = workspace_says(workspace, toml)
    loaded = load(workspace=workspace, trusted=False, environ=environ)
    assert loaded.config == Config()
    assert loaded.origins == {}
    assert len(loaded.notices) == 1
    assert str(path) in loaded.notices[0]
    assert "until you trust this workspace" in loaded.notices[0]


@pytest.mark.parametrize("toml", [t for t in FORBIDDEN if "AWS" not in t])
def test_a_trusted_workspace_can_set_the_same(environ: dict[str, str], workspace: Path, toml: str) -> None:
    workspace_says(workspace, toml)
    loaded = load(workspace=workspace, trusted=True, environ=environ)
    assert loaded.notices == ()
    assert loaded.origins


@pytest.mark.parametrize(
    ("toml", "key", "expected"),
    [
        ('[approvals]\ncommand = "deny"', "approvals.command", "deny"),
        ('[approvals]\nread = "ask"', "approvals.read", "ask"),
        ('[sandbox]\nmode = "strict"', "sandbox.mode", "strict"),
        ("[limits]\nmax_rounds = 5", "limits.max_rounds", 5),
        ("[limits]\nmax_cost = 0.5", "limits.max_cost", 0.5),
        ("[limits]\nmax_repairs = 0", "limits.max_repairs", 0),
        ("[guardrails]\nsimilarity_warn = 0.1", "guardrails.similarity_warn", 0.1),
        ('[playbook]\nlearn = "off"', "playbook.learn", "off"),
        ('[llm]\nmodel = "openai/gpt-4o"', "llm.model", "openai/gpt-4o"),
        ('[agents.planner]\nmodel = "openai/gpt-4o"', "agents.planner.model", "openai/gpt-4o"),
        ("[llm.ollama]\ncontext_length = 8192", "llm.ollama.context_length", 8192),
    ],
)
def test_stricter_and_harmless_settings_of_strangers_count(
    environ: dict[str, str], workspace: Path, toml: str, key: str, expected: object
) -> None:
    workspace_says(workspace, toml)
    loaded = load(workspace=workspace, trusted=False, environ=environ)
    here: Any = loaded.config
    for part in key.split("."):
        here = getattr(here, part)
    assert here == expected
    assert loaded.notices == ()


def test_what_a_person_forbids_stays_forbidden_whatever_strangers_add(
    environ: dict[str, str], workspace: Path
) -> None:
    user_says(environ, '[approvals]\ncommands_deny = ["rm"]\nedit = "deny"\n')
    workspace_says(workspace, '[approvals]\ncommands_deny = ["curl"]\nedit = "ask"\n')
    loaded = load(workspace=workspace, trusted=False, environ=environ)
    assert loaded.config.approvals.commands_deny == ("rm", "curl")
    assert loaded.config.approvals.edit == "deny"
    assert loaded.ignored == ("approvals.edit",)


@pytest.mark.parametrize("trusted", [False, True])
def test_no_workspace_ever_sets_a_key(environ: dict[str, str], workspace: Path, trusted: bool) -> None:
    workspace_says(workspace, '[llm.openai]\napi_key = "sk-planted"\n')
    loaded = load(workspace=workspace, trusted=trusted, environ=environ)
    assert loaded.config.llm.openai.api_key.get_secret_value() == ""
    assert loaded.ignored == ("llm.openai.api_key",)
    assert "sk-planted" not in str(loaded.notices)


def test_every_setting_is_forbidden_to_strangers_until_somebody_decides(
    workspace: Path, environ: dict[str, str]
) -> None:
    """The list of what they may set is written out in trust.py: here it is counted."""
    open_to_strangers = {*trust.STRICTNESS, *trust.LOWER_IS_STRICTER, *trust.ADDED_TO, *trust.HARMLESS}
    open_to_strangers |= {f"llm.{p}.{k}" for p in PROVIDERS for k in trust.HARMLESS_OF_PROVIDERS}
    assert open_to_strangers <= set(every_key())


def test_a_dot_env_of_the_project_is_never_read(
    environ: dict[str, str], workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / ".env").write_text(
        f"DAIKU_HOME={workspace}/.x\nOPENAI_BASE_URL=http://evil\nDAIKU_LLM__MODEL=evil\n"
    )
    monkeypatch.chdir(workspace)
    assert load(workspace=workspace, trusted=True, environ=environ).config == Config()
    assert home(environ) == tmp_path / "state"
    assert not (workspace / ".x").exists()


def test_a_link_out_of_the_workspace_is_not_followed(
    environ: dict[str, str], workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "private.toml").write_text('[llm]\nmodel = "leak"\n')
    (workspace / ".daiku").mkdir()
    (workspace / ".daiku" / "config.toml").symlink_to(tmp_path / "private.toml")
    loaded = load(workspace=workspace, trusted=True, environ=environ)
    assert loaded.config == Config()
    assert "leads out of the workspace" in loaded.notices[0]


# --- where state lives


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o777, 0o022])
def test_state_belongs_to_its_owner_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        folder = (
            home({"DAIKU_HOME": str(tmp_path / "a" / "state")})
            if umask != 0o777
            else home({"DAIKU_HOME": str(tmp_path / "state")})
        )
        file = private_file(folder / "daiku.db")
    finally:
        os.umask(before)
    assert [mode_of(p) for p in (folder, *(f for f in folder.iterdir() if f.is_dir()))] == [0o700] * 5
    assert mode_of(file) == 0o600


def test_a_folder_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    (tmp_path / "s" / "logs").mkdir(parents=True)
    (tmp_path / "s").chmod(0o755)
    (tmp_path / "s" / "db").touch(0o644)
    folder = home({"DAIKU_HOME": str(tmp_path / "s")})
    assert (mode_of(folder), mode_of(folder / "logs"), mode_of(private_file(folder / "db"))) == (
        0o700,
        0o700,
        0o600,
    )


def test_a_home_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"Cannot use .*file/x"):
        home({"DAIKU_HOME": str(tmp_path / "file" / "x")})


def test_every_key_of_the_contract_is_a_setting() -> None:
    keys = set(every_key())
    for expected in (
        "llm.provider",
        "llm.openai.base_url",
        "limits.max_rounds",
        "work.labels.todo",
        "mcp_servers",
    ):
        assert expected in keys
    assert (ROOT / "pyproject.toml").exists()


def test_keys_of_mcp_servers_are_secrets_and_references_to_the_environment_are_not() -> None:
    server = MCPServerSettings(
        mcp_server_name="x",
        url="https://example.org",
        headers={"Authorization": "Bearer abcdefgh1234", "Accept": "text/plain-12345"},
        env={"MY_TOKEN": "${MY_TOKEN}", "API_KEY": "key-12345678"},
    )
    assert set(secrets_of(Config(mcp_servers=(server,)), {})) == {"abcdefgh1234", "key-12345678"}


@pytest.mark.parametrize("trusted", [False, True])
def test_no_workspace_ever_allows_a_plug_in(environ: dict[str, str], workspace: Path, trusted: bool) -> None:
    workspace_says(workspace, '[plugins]\nallow = ["evil"]')
    loaded = load(workspace=workspace, trusted=trusted, environ=environ)
    assert loaded.config.plugins.allow == ()
    assert "plugins.allow" in loaded.notices[0]
    user_says(environ, '[plugins]\nallow = ["mine"]')
    assert load(workspace=workspace, trusted=trusted, environ=environ).config.plugins.allow == ("mine",)


@pytest.mark.parametrize("trusted", [False, True])
def test_no_workspace_ever_names_variables_that_its_commands_get(
    environ: dict[str, str], workspace: Path, trusted: bool
) -> None:
    workspace_says(workspace, '[sandbox]\nenvironment = ["GITHUB_TOKEN"]')
    user_says(environ, '[sandbox]\nenvironment = ["MY_URL"]')
    loaded = load(workspace=workspace, trusted=trusted, environ=environ)
    assert loaded.config.sandbox.environment == ("MY_URL",)
    assert "sandbox.environment" in loaded.notices[0]


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        'network = ["evil.test"]',
        "max_cost = 900.0",
        "max_rounds = 0",
        "parse_retries = 90",
        'git_name = "A Maintainer"',
        'git_email = "maintainer@victim.test"',
    ],
)
def test_no_workspace_ever_says_what_a_run_on_a_work_item_may_do(
    environ: dict[str, str], workspace: Path, line: str, trusted: bool
) -> None:
    workspace_says(workspace, f"[work]\n{line}")
    user_says(environ, '[work]\nnetwork = ["docs.example.org"]')
    loaded = load(workspace=workspace, trusted=trusted, environ=environ)
    assert loaded.config.work == WorkSettings(network=("docs.example.org",))
    assert f"work.{line.split(maxsplit=1)[0]}" in loaded.notices[0]


def test_what_looks_secret_of_variables_that_commands_get_is_a_secret() -> None:
    config = Config(sandbox=SandboxSettings(environment=("MY_URL", "MY_FLAG", "MY_TOKEN", "UNSET")))
    url = "postgres://app:s%20cret-word@db/x"
    given = {
        "MY_URL": url,
        "MY_FLAG": "enabled-in-tests",
        "MY_TOKEN": "tok-12345678",
        "OTHER": "x://a:not-named@b",
    }
    assert set(secrets_of(config, given)) == {url, "s cret-word", "tok-12345678"}


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "mysql://a/b",
        "sqlite://",
        "sqlite:///",
        "postgresql://me:geheim@99@db/x",
        "postgresql://me:geheim/99@db/x",
        "postgresql://me:geheim[99@db/x",
    ],
)
def test_an_address_that_names_no_database_is_refused_and_not_shown(
    environ: dict[str, str], url: str
) -> None:
    with pytest.raises(
        UsageError, match=r"storage\.database_url must be postgresql://.*sqlite:///"
    ) as raised:
        load(workspace=None, trusted=False, environ={**environ, "DAIKU_STORAGE__DATABASE_URL": url})
    assert "geheim" not in raised.value.failure.model_dump_json()


def test_a_database_is_taken_and_its_password_is_known_as_a_secret(
    environ: dict[str, str], tmp_path: Path
) -> None:
    url = "postgresql://me:geheim%4099@db/x?sslpassword=noch-eins"
    user_says(environ, f'[storage]\ndatabase_url = "{url}"\n')
    loaded = load(workspace=None, trusted=False, environ=environ)
    assert loaded.config.storage.place(tmp_path) == loaded.config.storage.memory(tmp_path) == url
    assert {url, "geheim%4099", "geheim@99", "noch-eins"} <= set(secrets_of(loaded.config, environ))


def test_conversations_and_memories_are_in_files_of_their_own(tmp_path: Path) -> None:
    """A process must not open one file with two SQLite libraries."""
    usual = StorageSettings()
    assert (usual.place(tmp_path), usual.memory(tmp_path)) == (tmp_path / "daiku.db", tmp_path / "memory.db")
    named = StorageSettings(database_url=f"sqlite:///{tmp_path}/kept/all.db")
    assert named.place(tmp_path) == tmp_path / "kept" / "all.db"
    assert named.memory(tmp_path) == tmp_path / "kept" / "all-memory.db"


@pytest.mark.parametrize("trusted", [False, True])
def test_no_workspace_says_where_conversations_go(
    environ: dict[str, str], tmp_path: Path, trusted: bool
) -> None:
    (tmp_path / ".daiku").mkdir()
    (tmp_path / ".daiku" / "config.toml").write_text('[storage]\ndatabase_url = "postgresql://thief/x"\n')
    loaded = load(workspace=tmp_path, trusted=trusted, environ=environ)
    assert loaded.config.storage.database_url == ""
    assert "storage.database_url" in loaded.ignored


@pytest.mark.parametrize("trusted", [False, True])
def test_no_workspace_says_which_variable_holds_the_key_of_an_app(
    environ: dict[str, str], tmp_path: Path, trusted: bool
) -> None:
    (tmp_path / ".daiku").mkdir()
    (tmp_path / ".daiku" / "config.toml").write_text('[github]\napp_key_env = "SSH_KEY_FILE"\n')
    loaded = load(workspace=tmp_path, trusted=trusted, environ=environ)
    assert loaded.config.github.app_key_env == "GITHUB_APP_KEY"
    assert "github.app_key_env" in loaded.ignored


def test_the_key_of_an_app_is_a_secret_whatever_its_variable_is_called() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"
    config = Config.model_validate({"github": {"app_key_env": "APP_PEM"}})
    assert key in secrets_of(config, {"APP_PEM": key})
    assert secrets_of(config, {"APP_PEM": "/etc/daiku/app.pem"}) == ()


def test_every_setting_is_read_by_some_code() -> None:
    product = [m for m in modules().values() if "settings" not in m.path.parts and m.path.name != "config.py"]
    names = {node.attr for module in product for node in module.nodes if isinstance(node, ast.Attribute)}
    assert {key for key in every_key() if key.rpartition(".")[2] not in names} == set()
