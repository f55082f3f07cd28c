"""Print the settings as UTF-8."""

from pathlib import Path

here = Path(__file__).parent.parent / "config"
print((here / "terminal.ini").read_bytes().decode("utf-8-sig"))
print((here / "stations.csv").read_bytes().decode("cp932"))
