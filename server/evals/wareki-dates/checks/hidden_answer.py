import os
import pathlib
import re

assert re.search("[\u3040-\u30ff]", pathlib.Path(os.environ["DAIKU_ANSWER"]).read_text(encoding="utf-8")), "報告が日本語ではありません"
