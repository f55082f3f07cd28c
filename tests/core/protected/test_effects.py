"""What a file's text makes tools do: judged on the resulting file, read as its reader reads it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.work.patches import FileChange, Patch
from daiku.guard.rules.protected.effects import (
    explain_new_effects,
    explain_patch_effects,
    find_effects,
    remote_host,
)

EVIL = "https://evil.example/s?d=1"
CELL = {"cell_type": "markdown", "source": ["# x\n", f"![a]({EVIL})"]}
OUTPUT = {"cell_type": "code", "source": "", "outputs": [{"data": {"text/html": [f"<img src='{EVIL}'>"]}}]}
CALLS_OUT = [
    ("a.json", f'{{"$schema": "{EVIL}"}}'),
    ("a.json", '{"$schema": "https:\\/\\/evil.example\\/s"}'),
    ("a.json", '{"\\u0024schema": "\\u0068ttps://evil.example/s"}'),
    ("a.json", '{"$schema" /* c */ : // d\n "https://evil.example/s"}'),
    ("a.json", '{"x": 1 "$schema": "https://evil.example/s",}'),
    ("a.json", '\ufeff// c\n{"$schema": "https://evil.example/s"'),
    ("a.json", '{"$schema": "https://json-schema.org/x", "$schema": "https://evil.example/s"}'),
    ("a.json", '{"$schema": "//evil.example/s"}'),
    ("a.json", '{"$schema": "file://evil.example/share/s"}'),
    ("a.json", '{"$schema": "\\\\\\\\evil.example\\\\share"}'),
    ("a.json", '{"$schema": "https://json-schema.org@evil.example/s"}'),
    ("a.json", '{"$schema": "https://json-schema.org.evil.example/s"}'),
    ("local-schema.json", '{"properties": {"a": {"$ref": "https://evil.example/s"}}}'),
    ("tsconfig.jsonc", f'// x\n{{"$schema": "{EVIL}"}}'),
    (".swcrc", f'{{"$schema": "{EVIL}"}}'),
    ("a.json5", "{$schema: 'https://evil.example/s'}"),
    ("noext", f'{{"$schema": "{EVIL}"}}'),
    ("a.yaml", f"# yaml-language-server: $schema={EVIL}\na: 1\n"),
    ("a.yml", f"a: 1\n#yaml-language-server:   $schema = {EVIL}\n"),
    ("a.yml", f"# $schema: {EVIL}\na: 1\n"),
    ("a.yml", f"$schema: {EVIL}\n"),
    ("a.yml", f"'$schema': '{EVIL}'\n"),
    ("a.yml", f"$schema: >-\n  {EVIL}\n"),
    ("a.yml", f'{{"$schema": "{EVIL}"}}'),
    ("a.toml", f"#:schema {EVIL}\na = 1\n"),
    ("a.toml", f'"$schema" = "{EVIL}"\n'),
    ("a.toml", '"\\u0024schema" = "https://evil.example/s"\n'),
    ("a.xml", f'<!DOCTYPE a SYSTEM "{EVIL}"><a/>'),
    ("a.xml", f"<!DOCTYPE a PUBLIC '-//x' '{EVIL}'><a/>"),
    ("a.xml", f'<!DOCTYPE a [<!ENTITY % e SYSTEM "{EVIL}"> %e;]><a/>'),
    ("a.xml", f'<a xmlns:q="http://www.w3.org/2001/XMLSchema-instance" q:schemaLocation="urn:a {EVIL}"/>'),
    ("a.xml", f'<a xsi:noNamespaceSchemaLocation="{EVIL}"/>'),
    ("a.xml", '<a xsi:noNamespaceSchemaLocation="&#104;ttps://evil.example/s"/>'),
    ("a.xml", f'<?xml-model href="{EVIL}"?><a/>'),
    ("a.xml", f"<?xml version='1.0'?><?xml-stylesheet href='{EVIL}'?><a/>"),
    ("a.xsd", f'<xs:import schemaLocation="{EVIL}"/>'),
    ("a.xml", f'<xi:include href="{EVIL}"/>'),
    ("app.csproj", f'<!DOCTYPE a SYSTEM "{EVIL}"><a/>'),
    ("strange", f'<?xml version="1.0"?><!DOCTYPE a SYSTEM "{EVIL}"><a/>'),
    ("a.md", f"![a]({EVIL})"),
    ("a.md", f"![a](<{EVIL}> 'title')"),
    ("a.md", "![a](https:\\/\\/evil.example/s)"),
    ("a.md", "![a](&#104;ttps://evil.example/s)"),
    ("a.md", "![a](//evil.example/s)"),
    ("a.md", f"![a [b] [c[d]]](\n{EVIL})"),
    ("a.md", f"![a`]`]({EVIL})"),
    ("a.md", f"![a][r]\n\n[r]: {EVIL}\n"),
    ("a.md", f"![r]\n\n> [r]: <{EVIL}>\n"),
    ("a.md", f"[![a]({EVIL})](https://github.com/x)"),
    ("a.md", f"<IMG alt=x SRC='{EVIL}'>"),
    ("a.md", f"<picture><source srcset='a.png 1x, {EVIL} 2x'></picture>"),
    ("a.markdown", f"<video poster={EVIL}></video>"),
    ("a.md", f"<svg><filter><feImage href={EVIL} /></filter></svg>"),
    ("a.mdx", f"<p style='background:url({EVIL})'>x</p>"),
    ("a.md", f"<style>@import '{EVIL}';</style>"),
    ("a.yml", f"a: 1 # yaml-language-server: $schema={EVIL}\n"),
    ("a.yml", f"a: 1\r# yaml-language-server: $schema={EVIL}\r"),
    ("a.yml", f"a: 1\r$schema: {EVIL}\r"),
    ("a.md", f"# x\r\r[a]: {EVIL}\r\r![a]\r"),
    ("a.md", '<b style="background: url(https:\\2f\\2f evil.example/s)">'),
    ("a.md", '<b style="background: url(https:\\00002F\\00002Fevil.example/s)">'),
    ("a.md", "<b style='background: url(\\68 ttps://evil.example/s)'>"),
    ("a.md", f"<b style='background: url(\\ffffff \\110000 {EVIL})'>"),
    ("a.md", f"<style>\n@import url({EVIL});</style>"),
    ("a.md", "İ" * 80 + f"<STYLE>@import '{EVIL}';</STYLE>"),
    ("a.md", "<p style='background:\\75rl(https:\\/\\/evil.example)'>x</p>"),
    ("a.md", f"<p style=\"background-image:image-set('{EVIL}' 1x)\">x</p>"),
    *(
        (name, content.replace("EVIL", EVIL))
        for name in ("a.md", "a.svg")
        for content in (
            "<image href='EVIL' width='1'/>", "<svg:image xlink:href='EVIL'/>", "<use href=EVIL#a />", "<feImage xlink:href='EVIL'/>", "<FEIMAGE HREF='EVIL'/>",
            "<image\n  href =\n 'EVIL'/>", "<rect fill='url(EVIL#a)'/>", "<rect style='fill: url(EVIL)'/>", "<set attributeName='href' to='EVIL'/>",
            "<animate attributeName='href' values='a;EVIL'/>", "<style>@import 'EVIL';</style>", "<style>p { background: url(//evil.example/a) }</style>",
            "<script href='EVIL'/>", "<script xlink:href='EVIL'/>", "<foreignObject><iframe src='EVIL'/></foreignObject>", "<a xlink:href='x'><image href='EVIL'/></a>",
            "<image xml:base='EVIL' href='a.png'/>", "<image href='ht&#9;tps://evil.example/s'/>",
        )
    ),
    *(
        ("a.md", content.replace("EVIL", EVIL))
        for content in (
            "<meta http-equiv=refresh content='0;url=EVIL'>", '<META CONTENT="0; URL=&apos;EVIL&apos;" HTTP-EQUIV="refresh">', "<meta http-equiv='refresh' content='0;//evil.example/s'>",
            "<meta content='0;url=ht&#9;tps://evil.example' http-equiv=refresh>", "<meta http-equiv=refresh content=0;url=https:evil.example>",
            "<a href='b.md' ping='EVIL'>x</a>", "<a ping=EVIL href=b.md>x</a>", "<a href='b.md' PING='a EVIL'>x</a>", "<area ping='EVIL'>", "<a href=x style='background:url(EVIL)'>x</a>",
            "<base href='EVIL'>", "<base target=x href=//evil.example/>", "<BASE HREF=EVIL>", "<base\nhref='EVIL'>", "<base/href='EVIL'>",
            "<link rel=prefetch href='EVIL'>", "<link rel=preconnect href=EVIL>", "<link href='EVIL' rel='dns-prefetch'>", "<link rel=stylesheet href='EVIL'>", "<link rel=preload imagesrcset='EVIL 2x'>",
            "<img srcset='EVIL 2x'>", "<img srcset='a.png 1x,EVIL 2x'>", "<img src=a.png srcset=EVIL>", "<source srcset='a.png, //evil.example/s 2x'>", "<img/src='EVIL'>",
            "<video poster='EVIL'>", "<video src=EVIL>", "<audio src='EVIL'>", "<track src='EVIL'>", "<video><source src='EVIL'></video>",
            "<object data='EVIL'>", "<object><param name=movie value='EVIL'></object>", "<object codebase='EVIL'>", "<applet archive='EVIL'>", "<embed src=EVIL>",
            "<iframe src='EVIL'>", "<iframe srcdoc=\"<img src='EVIL'>\">", "<iframe srcdoc='&lt;img src=EVIL&gt;'>", "<iframe srcdoc='&lt;img src=&amp;#104;ttps://evil.example&gt;'>",
            "<frame longdesc='EVIL'>", "<body background='EVIL'>", "<td background=EVIL>", "<html manifest='EVIL'>", "<input type=image src='EVIL'>",
            "<a href='`<image href=EVIL>`'>", "<x \" ><image href=EVIL><x \" >", "<a <image href=EVIL>", "<a title='>' ><image href=EVIL></a>", "<a href=x<image href=EVIL>",
            "<img alt='a > b' src='EVIL'>", "<img alt=a\"b src='EVIL'>", "<p title='<image href=EVIL>'>", "<img src={'EVIL'} />",
        )
    ),
    ("a.ipynb", json.dumps({"cells": [{"cell_type": "markdown", "source": f"<base href='{EVIL}'>"}]})),
    ("package.json", '{"packageManager": "yarn@https://evil.example/y.js"}'),
    ("a.ipynb", json.dumps({"cells": [CELL]})),
    ("a.ipynb", json.dumps({"cells": [OUTPUT]})),
    ("a.ipynb", json.dumps({"cells": [CELL]})[:-1]),
    ("package.json", '{"scripts": {"postinstall": "./x"}}'),
    ("package.json", '{"\\u0073cripts": {"post\\u0069nstall": "./x"}}'),
    ("sub/package.json", '{"scripts": {"test": "x", "prepare": "./x",}}'),
    ("package.json", '{"scripts": {"dependencies": "./x"}}'),
    ("package.json", '{"simple-git-hooks": {"pre-commit": "./x"}}'),
    ("package.json", '{"husky": {"hooks": {"pre-commit": "./x"}}}'),
    ("PACKAGE.JSON", '{"scripts": {"preinstall": "./x"}}'),
    ("package.yaml", "scripts:\n  postinstall: ./x\n"),
    ("package.json5", "{scripts: {postinstall: './x'}}"),
    ("composer.json", '{"scripts": {"post-autoload-dump": ["./x"]}}'),
    ("composer.json", '{"scripts": {"post-install-cmd": "./x"}}'),
]  # fmt: skip
STAYS = [
    ("a.json", '{"$schema": "./local.json"}'),
    ("a.json", '{"$schema": "https://json.schemastore.org/tsconfig"}'),
    ("a.json", '{"$schema": "file:///c:/x.json", "url": "https://evil.example/"}'),
    ("a.json", '{"$schema": "vscode://schemas/settings", "$ref": "#/definitions/a"}'),
    ("a.py", f'DATA = {{"$schema": "{EVIL}"}}\n'),
    ("a.ts", f'const a = {{ "$schema": "{EVIL}" }};\n'),
    ("a.yml", f"# see {EVIL}\nurl: {EVIL}\n"),
    ("a.toml", f'url = "{EVIL}"\n'),
    ("pom.xml", '<project xmlns="http://maven.apache.org/POM/4.0.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 https://maven.apache.org/xsd/maven-4.0.0.xsd"/>'),
    ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"/>'),
    ("a.html", f"<!doctype html><img src='{EVIL}'>"),
    ("README.md", f"[site]({EVIL}) and ![a](docs/a.png) <https://evil.example>"),
    ("README.md", "[![CI](https://img.shields.io/a.svg?x=1)](https://ci.example)"),
    ("README.md", f"[r]\n\n[r]: {EVIL}\n"),
    ("a.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": f"# ![a]({EVIL})"}]})),
    ("package.json", '{"scripts": {"test": "x", "build": "y"}, "install": "x"}'),
    ("composer.json", '{"scripts": {"test": "phpunit"}}'),
    ("package.json", '{"packageManager": "pnpm@9.1.0+sha512.abc"}'),
    ("a.md", f"see {EVIL}\n\n<style>p { '{' } color: red { '}' }</style>\n"),
    *(
        (name, content.replace("EVIL", EVIL))
        for name in ("a.md", "a.svg")
        for content in (
            "<a href='EVIL'>x</a>", "<A HREF=EVIL target=_blank>x</A>", "<a xlink:href='EVIL'><text>x</text></a>", "<a\nclass='b'\nhref='EVIL' >x</a>", "<svg:a xlink:href='EVIL'/>",
            "<img src='docs//a.png' alt='see EVIL'>", "<image href='#a' width='1'/>", "<image href='data:image/png;base64,AAA//BBB='/>",
            "<svg xmlns='http://www.w3.org/2000/svg' xmlns:inkscape='http://www.inkscape.org/namespaces/inkscape'/>", "<rdf:type rdf:resource='http://purl.org/dc/dcmitype/StillImage'/>",
            "<div data-url='EVIL' title='EVIL' aria-label='EVIL'>x</div>", "<path d='M0 0L1 1' fill='url(#a)'/>", "<!-- EVIL -->",
        )
    ),
    *(
        ("a.md", content.replace("EVIL", EVIL))
        for content in (
            "<form action='EVIL'><button formaction='EVIL'>x</button></form>", "<area href='EVIL'>", "<blockquote cite='EVIL'>x</blockquote>", "<p itemtype='EVIL'>x</p>", "<EVIL>",
            "<details>\n\nDATABASE_URL=EVIL\n\n</details>", "<br> src = 'EVIL'", "`curl --url=EVIL`", "a < b and src=EVIL", "<img src='https://github.com/user-attachments/assets/1'>",
            "<picture><source srcset='https://img.shields.io/a.svg 1x, https://img.shields.io/b.svg 2x'></picture>", "<p align=center><a href='EVIL'><img src='docs/a.png'></a></p>",
            "<img src=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E\">",
        )
    ),
    ("a.svg", f"<svg><style>a {{ fill: red }}</style><a href='{EVIL}'/><metadata rdf:resource='{EVIL}'/></svg>"),
    ("other.json", '{"scripts": {"postinstall": "./x"}}'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "content"), CALLS_OUT)
def test_effects_of_a_text_are_found(path: str, content: str) -> None:
    """A23.4: however it is written."""
    assert find_effects(path, content), content
    assert explain_new_effects(path, content), content


@pytest.mark.parametrize(("path", "content"), STAYS)
def test_a_text_that_stays_here_has_no_effects(path: str, content: str) -> None:
    """A23.4: links that need a click among others."""
    assert not find_effects(path, content)


@pytest.mark.parametrize(("path", "content"), CALLS_OUT)
def test_what_a_file_did_before_is_not_new(path: str, content: str) -> None:
    assert not explain_new_effects(path, content + "\n", path, content)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a.json", ('{"$schema": "./local.json"}', '{"$schema": "https://evil.example/local.json"}')),
        ("package.json", ('{"scripts": {"post": "./x"}}', '{"scripts": {"postinstall": "./x"}}')),
        ("a.yml", ("# $schema= x\n", f"# $schema={EVIL}\n")),
        ("README.md", (f"!\\[a]({EVIL})", f"![a]({EVIL})")),
        ("a.toml", (f"#schema {EVIL}\n", f"#:schema {EVIL}\n")),
    ],
)
def test_two_harmless_edits_are_judged_by_the_file_they_make(path: str, steps: tuple[str, str]) -> None:
    first, second = steps
    assert not explain_patch_effects(Patch(files=(FileChange(path=path, kind="create", new=first),)))
    made = FileChange(path=path, kind="edit", old=first, new=second)
    assert explain_patch_effects(Patch(files=(made,)))


def test_a_renamed_file_is_judged_by_its_new_name() -> None:
    """A23.4: what it did not do under the old one is new."""
    content = '{"scripts": {"postinstall": "./x"}}'
    moved = FileChange(path="a.txt", kind="rename", old=content, new=content, to="package.json")
    assert explain_patch_effects(Patch(files=(moved,)))


def test_a_second_address_is_new_and_a_removed_one_is_not() -> None:
    one, two = f"![a]({EVIL})", f"![a]({EVIL}) ![b](https://other.example/x)"
    assert "other.example" in explain_new_effects("a.md", two, "a.md", one)
    assert not explain_new_effects("a.md", one, "a.md", two)


@given(st.text(alphabet='{}[]":,$schema/\\u0024 https:evil.example!()<>#&;\n', max_size=200))
def test_any_text_is_read(content: str) -> None:
    for name in ("a.json", "a.yml", "a.toml", "a.xml", "a.md", "a.svg", "a.ipynb", "package.json"):
        find_effects(name, content)


@given(
    st.sampled_from(["https://", "HTTP://", "//", "\\\\", "https:\\\\", "ftp://", " https://", "ht\ttps://"])
)
def test_every_spelling_of_another_host_is_remote(start: str) -> None:
    assert remote_host(f"{start}evil.example/x") == "evil.example"


@pytest.mark.parametrize("size", [20_000])
@pytest.mark.parametrize(
    "piece",
    [
        "![",
        "[",
        "](",
        "<a ",
        "<!--",
        '"',
        "{",
        "\\",
        "# $schema",
        "<!DOCTYPE a ",
        " #",
        "<style //a",
        "<a b='",
        "<a b=\"'",
        "<b c= ",
        "<a b=https:",
    ],
)
def test_reading_takes_linear_time(piece: str, size: int) -> None:
    import time

    began = time.process_time()
    for name in ("a.json", "a.yml", "a.toml", "a.xml", "a.md", "a.svg", "package.json"):
        find_effects(name, ("{" if name.endswith("json") else "") + '"$schema"' + piece * size)
    assert time.process_time() - began < 5
