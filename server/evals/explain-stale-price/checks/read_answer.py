import os
import pathlib
import sys

answer = pathlib.Path(os.environ["DAIKU_ANSWER"]).read_text(encoding="utf-8")
low = answer.lower()
wanted = {
    "the function": "quoted_price" in answer,
    "where it is kept": "quotes" in answer,
    "what is meant to forget it": "forget" in low,
    "why it does not: the key": "currency" in low and ("key" in low or "tuple" in low),
}
missing = [name for name, there in wanted.items() if not there]
sys.exit(f"not in the answer: {', '.join(missing)}" if missing else 0)
