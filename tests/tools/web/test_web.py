"""The web tools against a small web on loopback: pages as text, engines, and everything that must be refused."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
import time
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from daiku.domain.config import ApprovalSettings, ResearchSettings
from daiku.domain.events import Event, Notice
from daiku.domain.tools import ToolCall, ToolResult
from daiku.guard.rules.protected.addresses import WebUrl
from daiku.settings.config import Config
from daiku.texts.text import from_json, render
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import Preview, ToolContext
from daiku.tools.web import Web, build_web_tools
from daiku.tools.web.cache import WebCache
from daiku.tools.web.extract import build_html_page
from daiku.tools.web.public_web import FetchProblem, FetchRequest, FetchResponse, PublicWeb
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace
from tests.cases import for_each
from tests.services.web import LocalWeb, local_web


@pytest.fixture
async def web() -> AsyncGenerator[LocalWeb]:
    async with local_web() as running:
        yield running


class Hands:
    """The tools over one road, and what they told."""

    def __init__(
        self,
        folder: Path,
        road: PublicWeb | None = None,
        config: Config | None = None,
        cache: WebCache | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        client = Web(road or PublicWeb(private=True, seconds=5), cache or WebCache(), environ or {})
        self.registry = ToolRegistry(build_web_tools(client))
        self.config = config or Config()
        self.told: list[Event] = []
        self.workspace = DiskWorkspace([folder])
        self.checkpoints = CheckpointStore(folder.parent / "c", self.workspace)

    @property
    def context(self) -> ToolContext:
        return ToolContext(
            session="s",
            run="r",
            call_id="c",
            workspace=self.workspace,
            checkpoints=self.checkpoints,
            config=self.config,
            emit=self.told.append,
        )

    async def __call__(self, tool: str, **args: JsonValue) -> ToolResult:
        return await self.registry.call(ToolCall(tool=tool, args=args), self.context)

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.told if isinstance(event, Notice)]


def engine(name: str, web: LocalWeb, **settings: str) -> Config:
    return Config.model_validate({"research": {"engine": name, "base_url": web.url(""), **settings}})


# -- pages ---------------------------------------------------------------------------------


async def test_a_page_is_its_main_text_as_markdown(workspace: Path, web: LocalWeb) -> None:
    result = await Hands(workspace)("web/fetch", url=web.url("/docs/saws"))
    assert result.ok
    assert result.untrusted
    text = result.text
    assert text.startswith(f"Source: {web.url('/docs/saws')}\nTitle: Saws & planes\n\n# Saws")
    assert "A saw has **teeth**." in text
    assert f"[planes]({web.url('/planes?x=1')})" in text
    assert "```python\ndef cut():\n    return 1\n" in text
    assert "| rip | 5 |" in text
    assert "- one\n- two" in text
    assert "Zerowidth and tag letters" in text
    for unseen in ("HIDDEN", "ghost", "ignore all", "alert", "MENU", "FOOTER", "javascript:", "\u200b"):
        assert unseen not in text


async def test_other_texts_come_as_they_are(workspace: Path, web: LocalWeb) -> None:
    call = Hands(workspace)
    assert "plain <b>text</b>\n  as it is" in (await call("web/fetch", url=web.url("/plain"))).text
    assert '"b": "é"' in (await call("web/fetch", url=web.url("/json"))).text
    assert "大工の道具" in (await call("web/fetch", url=web.url("/sjis"))).text
    assert "packed words" in (await call("web/fetch", url=web.url("/packed"))).text


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/pdf", "PDF"),
        ("/png", "picture"),
        ("/status?code=403", "403"),
        ("/status?code=500", "500"),
        ("/nowhere", "404"),
    ],
)
async def test_what_cannot_be_read_says_why(workspace: Path, web: LocalWeb, path: str, why: str) -> None:
    result = await Hands(workspace)("web/fetch", url=web.url(path))
    assert not result.ok
    assert why in result.text
    assert not result.untrusted


async def test_a_long_page_comes_in_parts(workspace: Path, web: LocalWeb) -> None:
    call = Hands(workspace)
    first = await call("web/fetch", url=web.url("/long"))
    assert "line 0 of" in first.text
    assert "more characters: web__fetch with start=" in first.text
    following = int(first.text.rpartition("start=")[2].removesuffix(".)"))
    assert (
        (await call("web/fetch", url=web.url("/long"), start=following))
        .text.partition("\n\n")[2]
        .startswith("line ")
    )
    last = await call("web/fetch", url=web.url("/long"), start=72_000)
    assert "line 2999 of" in last.text
    assert "more characters" not in last.text
    assert not (await call("web/fetch", url=web.url("/long"), start=10**9)).ok
    assert web.paths == ["/long"]


@pytest.mark.slow
async def test_floods_bombs_and_silence_are_bounded(workspace: Path, web: LocalWeb) -> None:
    road = PublicWeb(private=True, seconds=5)
    for path in ("/flood", "/bomb"):
        answer = await road.fetch(FetchRequest(web.url(path)))
        assert isinstance(answer, FetchResponse)
        assert answer.cut
        assert len(answer.body) == 2_000_000
    began = time.monotonic()
    silent = await PublicWeb(private=True, seconds=0.3).fetch(FetchRequest(web.url("/silence")))
    assert isinstance(silent, FetchProblem)
    assert "0.3 s" in silent.why
    assert time.monotonic() - began < 3


TRAPS = {
    "deep": "<div>" * 5000 + "deep" + "</div>" * 5000,
    "lists": "<ul><li>" * 3000 + "deep",
    "paragraphs": "<p>" * 10_000 + "deep",
    "bold": "<b>" * 50_000 + "deep",
    "comments": "deep" + "<!--" * 200_000,
    "quotes": "deep" + "<a b='" * 100_000,
    "tags": "deep" + "<a " * 200_000,
    "brackets": "deep" + "<" * 100_000,
    "ends": "deep" + "</x " * 200_000,
    "styles": "deep" + "<style>" * 100_000,
    "entities": "deep" + "&" * 100_000,
    "headers": "deep" + "<header>" * 20_000,
    "links": "deep" + "<a href=b>x</a> " * 4000,
}


@pytest.mark.slow
@for_each("trap", TRAPS)
def test_broken_and_hostile_html_is_read_in_time(trap: str) -> None:
    began = time.monotonic()
    assert "deep" in build_html_page("http://a/", TRAPS[trap]).text
    assert time.monotonic() - began < 10


@for_each(
    "html",
    [
        "<p hidden>HIDDEN<p>seen",
        "<ul><li style='display:none'>HIDDEN<li>seen</ul>",
        "<div><li hidden>HIDDEN</div>seen",
        "<div hidden>" + "<div>" * 300 + "HIDDEN" + "</div>" * 300 + "HIDDEN</div>seen",
        "<table><tr><td hidden>HIDDEN<td>seen</table>",
        "<div hidden><b>HIDDEN</i></b></div>seen",
        '<div style="visibility : hidden">HIDDEN</div>seen',
        "<div style=opacity:0>HIDDEN</div>seen",
        '<div style="position:absolute;left:-9999px">HIDDEN</div>seen',
        "<style>/* } */ .a, #b { color: red; display: NONE }</style><i class='x a'>HIDDEN</i><i id=b>HIDDEN</i>seen",
        "<textarea><p>HIDDEN</textarea>seen<script>'<p>HIDDEN'</script><noscript>HIDDEN</noscript>",
        "<!-- HIDDEN -- > HIDDEN -->seen<!DOCTYPE HIDDEN>",
        "seen<p x='" + "y" * 30_000 + "'>HIDDEN</p>",
        "seen<div hidden>HIDDEN",
        "<header>HIDDEN</header><p>seen",
        "&lt;b&gt; seen",
    ],
)
def test_what_a_reader_does_not_see_is_not_read(html: str) -> None:
    text = build_html_page("http://a/", html).text
    assert "seen" in text
    assert "HIDDEN" not in text


def test_main_text_is_what_one_element_holds() -> None:
    around = "<div>around</div>"
    for inner in ("<main>text</main>", "<div role=main>text</div>", "<article>text</article>"):
        assert build_html_page("http://a/", around + inner).text == "text"
    two = "<article>one</article><article>two</article>"
    assert build_html_page("http://a/", around + two).text.split() == ["around", "one", "two"]
    little = "<main>x</main>" + "<p>much more than that</p>" * 20
    assert "much more" in build_html_page("http://a/", little).text


# -- where nobody goes (A55) ---------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:{port}/plain",
        "http://localhost:{port}/plain",
        "http://127.1:{port}/plain",
        "http://[::ffff:7f00:1]:{port}/plain",
        "file:///etc/passwd",
        "http://x:y@127.0.0.1:{port}/plain",
    ],
)
async def test_a55_inside_addresses_are_refused_before_anybody_is_asked(
    workspace: Path, web: LocalWeb, url: str
) -> None:
    hands = Hands(workspace, PublicWeb())
    target = url.format(port=web.port)
    preview = await hands.registry.preview(ToolCall(tool="web/fetch", args={"url": target}), hands.context)
    assert isinstance(preview, ToolResult)
    result = await hands("web/fetch", url=target)
    assert not result.ok
    assert web.asked == []


async def test_a55_a_name_that_leads_inside_is_refused(workspace: Path, web: LocalWeb) -> None:
    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return ("93.184.216.34", "127.0.0.1")

    result = await Hands(workspace, PublicWeb(resolve=resolve))(
        "web/fetch", url=web.url("/plain", "rebind.example.com")
    )
    assert not result.ok
    assert "leads inside: 127.0.0.1" in result.text
    assert web.asked == []


async def test_a55_a_name_is_looked_up_once_and_pinned(web: LocalWeb) -> None:
    answers = [("127.0.0.1",), ("127.0.0.2",)]
    looked: list[str] = []

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        looked.append(host)
        return answers.pop(0)

    # Private addresses are open here: what counts is that the connection goes to the first answer.
    answer = await PublicWeb(private=True, resolve=resolve).fetch(
        FetchRequest(web.url("/plain", "rebind.example.com"))
    )
    assert isinstance(answer, FetchResponse)
    assert answer.url == web.url("/plain", "rebind.example.com")
    assert looked == ["rebind.example.com"]
    assert web.asked[0].host == f"rebind.example.com:{web.port}"


# The program openssl makes the certificate of the test's server.
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_a55_the_certificate_must_be_of_the_name_not_of_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subject = ["-subj", "/CN=pinned.example.com", "-addext", "subjectAltName=DNS:pinned.example.com"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    await asyncio.to_thread(
        subprocess.run, [*command, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    road = PublicWeb(private=True, resolve=resolve)
    answer = await road.fetch(FetchRequest(f"https://pinned.example.com:{port}/"))
    assert isinstance(answer, FetchResponse)
    assert answer.body == b"ok"
    other = await road.fetch(FetchRequest(f"https://other.example.com:{port}/"))
    assert isinstance(other, FetchProblem)
    assert "not valid for 'other.example.com'" in other.why
    server.close()


@pytest.mark.parametrize(
    "inside", ["http://169.254.169.254/", "http://localhost/", "file:///etc/passwd", "http://10.0.0.1/"]
)
async def test_a55_a_redirect_inside_is_refused(web: LocalWeb, inside: str) -> None:
    """The first address is taken for a public one, and redirects are checked as everything is."""

    class Open(PublicWeb):
        async def _resolve_addresses(self, place: WebUrl, private: bool) -> tuple[str, ...]:
            return ("127.0.0.1",)

    url = web.url(f"/to?u={inside}", "public.example.com")
    answer = await Open().fetch(FetchRequest(url), follow=lambda host: True)
    assert isinstance(answer, FetchProblem)
    assert web.paths == [f"/to?u={inside}"]


async def test_leave_to_reach_a_private_place_is_for_that_place_and_not_for_where_it_redirects_to(
    web: LocalWeb,
) -> None:
    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    for elsewhere in ("http://elsewhere.example.com/", "http://10.0.0.8/"):
        own = FetchRequest(web.url(f"/to?u={elsewhere}"), private=True)
        answer = await PublicWeb(resolve=resolve).fetch(own, follow=lambda host: True)
        assert isinstance(answer, FetchProblem)
        assert "leads inside" in answer.why or "private" in answer.why, answer.why
    assert len(web.paths) == 2


async def test_redirects_are_followed_on_one_site_and_end(web: LocalWeb) -> None:
    road = PublicWeb(private=True)
    answer = await road.fetch(FetchRequest(web.url("/to?u=/plain")))
    assert isinstance(answer, FetchResponse)
    assert answer.url == web.url("/plain")
    endless = await road.fetch(FetchRequest(web.url("/loop")))
    assert isinstance(endless, FetchProblem)
    assert "more than 5" in endless.why
    assert len(web.asked) == 2 + 6


async def test_another_site_is_told_and_not_gone_to(workspace: Path, web: LocalWeb) -> None:
    other = web.url("/plain", "localhost")
    call = Hands(workspace)
    result = await call("web/fetch", url=web.url(f"/to?u={other}"))
    assert not result.ok
    assert f"Call web__fetch with {other}" in result.text
    assert len(web.asked) == 1
    call.config = Config(approvals=ApprovalSettings(network="allow"))
    assert (await call("web/fetch", url=web.url(f"/to?u={other}"))).ok


async def test_a_key_never_goes_to_another_site(web: LocalWeb) -> None:
    other = web.url("/plain", "localhost")
    headers = {"authorization": "Bearer secret"}
    await PublicWeb(private=True).fetch(
        FetchRequest(web.url(f"/to?u={other}"), headers=headers), follow=lambda host: True
    )
    assert [a.headers.get("authorization") for a in web.asked] == ["Bearer secret", None]


async def test_a_proxy_of_the_environment_is_used_and_said(
    workspace: Path, web: LocalWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", web.url(""))
    monkeypatch.setenv("NO_PROXY", "direct.example.com")
    hands = Hands(workspace, PublicWeb(seconds=3))
    result = await hands("web/fetch", url="http://public.example.com/plain")
    assert web.paths == ["http://public.example.com/plain"]
    assert "a proxy looked the name up" in result.text
    assert web.asked[0].host == "public.example.com"
    for inside in (
        "http://169.254.169.254/",
        "http://2852039166/",
        "http://localhost/",
        "http://metadata.google.internal/",
    ):
        assert not (await hands("web/fetch", url=inside)).ok
    assert not (
        await hands("web/fetch", url="http://direct.example.com/plain")
    ).ok  # no name service in tests
    assert len(web.asked) == 1


# -- engines -------------------------------------------------------------------------------

LINKS = [("https://a.example.com/one", "First"), ("https://b.example.com/two?x=1", "Second")]


@pytest.mark.parametrize(
    ("name", "settings"),
    [("duckduckgo", {}), ("brave", {"api_key_env": "MY_KEY"}), ("tavily", {}), ("searxng", {})],
)
async def test_every_engine_gives_the_same_results(
    workspace: Path, web: LocalWeb, name: str, settings: dict[str, str]
) -> None:
    web.links = LINKS
    keys = {"MY_KEY": "brave-key", "TAVILY_API_KEY": "tavily-key"}
    hands = Hands(workspace, PublicWeb(), engine(name, web, **settings), environ=keys)
    result = await hands("web/search", query="rust borrow checker E0502", limit=2)
    assert result.ok
    assert result.untrusted
    assert result.data is not None
    rows = result.data["results"]
    assert isinstance(rows, list)
    found = [(r["url"], r["title"], str(r["text"])[:6], r["source"]) for r in rows if isinstance(r, dict)]
    assert found == [(url, title, "About ", name) for url, title in LINKS]
    assert "1. First\n   https://a.example.com/one\n   About First" in result.text
    assert "rust" in (web.asked[0].path + web.asked[0].body.decode())
    await hands("web/search", query="rust borrow checker E0502", limit=2)
    assert len(web.asked) == 1, "the second time comes from the cache"


@pytest.mark.parametrize("name", ["brave", "tavily"])
async def test_a_missing_key_is_a_notice_and_no_failure(workspace: Path, web: LocalWeb, name: str) -> None:
    hands = Hands(workspace, config=engine(name, web))
    result = await hands("web/search", query="x")
    assert result.ok
    assert result.data is not None
    assert result.data["results"] == []
    assert f"{name.upper()}_API_KEY" in hands.notices[0]
    assert web.asked == []


async def test_what_is_wrong_with_an_engine_is_said(workspace: Path, web: LocalWeb) -> None:
    web.blocked = True
    blocked = Hands(workspace, config=engine("duckduckgo", web))
    assert (await blocked("web/search", query="x")).ok
    assert "too many searches" in blocked.notices[0]
    wrong = Hands(workspace, config=engine("tavily", web), environ={"TAVILY_API_KEY": "no"})
    await wrong("web/search", query="x")
    assert "refused (401)" in wrong.notices[0]
    homeless = Hands(workspace, config=Config(research=ResearchSettings(engine="searxng")))
    await homeless("web/search", query="x")
    assert "research.base_url" in homeless.notices[0]
    offline = Hands(workspace, PublicWeb(seconds=3), Config())
    result = await offline("web/search", query="x")
    assert result.ok
    assert "was not reached" in offline.notices[0]
    assert "Go on with what is known" in result.text


async def test_an_engine_that_answers_nonsense_is_a_notice(workspace: Path, web: LocalWeb) -> None:
    hands = Hands(workspace, config=engine("searxng", web).model_copy())
    hands.config = Config.model_validate({"research": {"engine": "searxng", "base_url": web.url("/plain?")}})
    assert (await hands("web/search", query="x")).ok
    assert "something else than its results" in hands.notices[0]


async def test_nothing_found_is_no_problem(workspace: Path, web: LocalWeb) -> None:
    hands = Hands(workspace, config=engine("duckduckgo", web))
    result = await hands("web/search", query="x")
    assert result.ok
    assert "found nothing" in result.text
    assert hands.notices == []


# -- research ------------------------------------------------------------------------------


async def test_research_searches_at_most_three_questions_and_opens_the_best_page(
    workspace: Path, web: LocalWeb
) -> None:
    web.links = [(web.url("/article"), "Saws"), (web.url("/pdf"), "Paper")]
    hands = Hands(workspace, config=engine("searxng", web))
    result = await hands("web/research", queries=["a", "b", "A", "c", "d"])
    assert result.ok
    assert result.untrusted
    searched = [path for path in web.paths if path.startswith("/search")]
    assert len(searched) == 3
    assert web.paths.count("/article") == 1
    assert result.data is not None
    assert result.data["queries"] == ["a", "b", "c"]
    rows = result.data["results"]
    assert isinstance(rows, list)
    assert [(r["query"], r["url"]) for r in rows if isinstance(r, dict)] == [
        ("a", web.url("/article")),
        ("a", web.url("/pdf")),
    ]
    assert "A saw has **teeth**" in json.dumps(rows)
    assert f"[1] [Saws & planes]({web.url('/article')})" in result.text


async def test_research_without_a_web_gives_its_questions_back(workspace: Path, web: LocalWeb) -> None:
    hands = Hands(workspace, PublicWeb(seconds=3), Config())
    result = await hands("web/research", queries=["a", "b"])
    assert result.ok
    assert result.data is not None
    sources = from_json("", result.data.pop("sources"))
    assert sources == result.text
    assert "分かっていることだけで進めます" in render(sources, "ja")
    assert result.data == {"queries": ["a", "b"], "results": [], "ask_user": ""}
    assert len(hands.notices) == 1


async def test_a_page_inside_is_not_opened_though_an_engine_names_it(workspace: Path, web: LocalWeb) -> None:
    web.links = [(web.url("/article"), "Inside")]
    hands = Hands(workspace, PublicWeb(), engine("searxng", web))
    result = await hands("web/research", queries=["a"])
    assert "/article" not in web.paths
    assert "was not opened" in hands.notices[0]
    assert result.data is not None
    assert "About Inside" in json.dumps(result.data["results"])


async def test_one_question_to_the_person_shows_all_that_is_asked(workspace: Path, web: LocalWeb) -> None:
    hands = Hands(workspace, config=engine("searxng", web))
    call = ToolCall(tool="web/research", args={"queries": ["what", "why"]})
    preview = await hands.registry.preview(call, hands.context)
    assert isinstance(preview, Preview)
    assert "1. what\n2. why" in preview.text
    assert "searxng" in preview.text


# -- the cache -----------------------------------------------------------------------------


def test_the_cache_outlives_the_process_for_an_hour_and_is_private(tmp_path: Path) -> None:
    now = [1000.0]
    folder = tmp_path / "web"
    WebCache(folder, clock=lambda: now[0]).put({"a": 1}, "page", "https://secret.example.com")
    again = WebCache(folder, clock=lambda: now[0])
    assert again.get("page", "https://secret.example.com") == {"a": 1}
    assert again.get("page", "https://other.example.com") is None
    (file,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    assert "secret" not in file.name
    now[0] += 3601
    assert again.get("page", "https://secret.example.com") is None
    file.write_text("damaged")
    assert WebCache(folder, clock=lambda: 1000.0).get("page", "https://secret.example.com") is None


def test_the_cache_stays_small(tmp_path: Path) -> None:
    cache = WebCache(tmp_path / "web")
    for number in range(310):
        cache.put({"n": number}, str(number))
    assert len(list((tmp_path / "web").iterdir())) == 300
    assert cache.get("309") == {"n": 309}
