"""Small wheels, built and unpacked here as an installer does it, without a network."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


def build_wheel(
    folder: Path, name: str, module: str, points: Mapping[str, str], version: str = "1.2"
) -> Path:
    """A wheel of one module, `<name>_plugin`, with `points` as its entry points: `{"daiku.tools": "x = y:Z"}`."""
    plain = name.replace("-", "_")
    info = f"{plain}-{version}.dist-info"
    entries = "".join(f"[{group}]\n{lines}\n" for group, lines in points.items())
    files = {
        f"{plain}_plugin.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": entries,
    }
    record = [f"{path},sha256={_digest(text)},{len(text.encode())}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    wheel = folder / f"{plain}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


def install(wheel: Path, site: Path) -> None:
    """Put the wheel's files where Python looks for packages; each is as RECORD says."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        for line in archive.read(record).decode().splitlines():
            path, digest, _ = line.rsplit(",", 2)
            assert not digest or digest == f"sha256={_digest((site / path).read_text())}"


def _digest(text: str) -> str:
    found = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode()
