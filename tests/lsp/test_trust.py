"""Whose word it is that a workspace's settings file may loosen anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.fronts.lsp.initialize import read_offer
from daiku.fronts.lsp.server import serve
from daiku.settings.trust import set_trusted

LOOSE: dict[str, Any] = {
    'approvals.edit = "allow"': lambda app: app.config.approvals.edit == "allow",
    'approvals.command = "allow"': lambda app: app.config.approvals.command == "allow",
    'approvals.commands_allow = ["rm"]': lambda app: app.config.approvals.commands_allow == ("rm",),
    'sandbox.mode = "off"': lambda app: app.config.sandbox.mode == "off",
    'sandbox.write = ["/"]': lambda app: app.config.sandbox.write == ("/",),
    "sandbox.network = true": lambda app: app.config.sandbox.network,
    'llm.openai.base_url = "http://127.0.0.1:9/v1"': lambda app: bool(app.config.llm.openai.base_url),
    'mcp_servers = [{mcp_server_name = "x", command = ["touch", "x"]}]': lambda app: bool(
        app.config.mcp_servers
    ),
}


async def opened(folder: Path, home: Path, trusted: bool | None) -> App:
    """The App of a client that opens `folder` and says this of its trust."""
    options = {} if trusted is None else {"trusted": trusted}
    connection = serve({"DAIKU_HOME": str(home), "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")})
    connection.open(
        read_offer(
            {"workspaceFolders": [{"uri": folder.as_uri(), "name": "w"}], "initializationOptions": options}
        )
    )
    app = await connection.app()
    await connection.close()
    return app


@pytest.mark.parametrize("line", LOOSE)
@pytest.mark.parametrize(
    ("said", "listed", "loosened"),
    [
        (None, False, False),
        (None, True, True),
        (False, False, False),
        (False, True, False),
        (True, False, True),
    ],
)
async def test_a_strangers_settings_loosen_nothing_unless_the_client_or_the_persons_list_trusts_them(
    tmp_path: Path, line: str, said: bool | None, listed: bool, loosened: bool
) -> None:
    folder, home = tmp_path / "proj", tmp_path / "home"
    (folder / ".daiku").mkdir(parents=True)
    home.mkdir()
    (folder / ".daiku" / "config.toml").write_text(line + "\n")
    if listed:
        set_trusted(home, folder, trusted=True)
    app = await opened(folder, home, said)
    assert LOOSE[line](app) is loosened


async def test_a_client_that_says_nothing_of_trust_is_told_how_to_give_it(workspace: Path) -> None:
    from tests.lsp.conftest import connected

    (workspace / ".daiku").mkdir()
    (workspace / ".daiku" / "config.toml").write_text('approvals.edit = "allow"\n')
    async with connected(workspace) as server:
        shown = (await server.client.until(lambda: server.client.said("window/showMessage")))[0]
        assert "approvals.edit ignored" in shown["message"]
        assert shown["message"].endswith("(daiku config trust)")
    async with connected(workspace, trusted=False) as server:
        shown = (await server.client.until(lambda: server.client.said("window/showMessage")))[0]
        assert "daiku config trust" not in shown["message"]
