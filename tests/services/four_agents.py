"""Who plays the model in seed 0's example: five roles, each in the form that the seed gives it."""

from __future__ import annotations

import json
from typing import Any

from tests.services.models import Said

Json = dict[str, Any]
GOAL = "Write a small library that adds Roman numerals, with a test."
PLAN = """Project Name: Roman

Your Reply to the Human Prompter: Sure, a little library for Roman numerals with its test.

Current Focus: Python Roman numerals parsing

Plan:
- [ ] Step 1: Write roman.py and its test.
  Check: `python3 test_roman.py`
- [ ] Step 2: Show that it works from the command line.
  Check: `python3 roman.py XIV IX`

Summary: A module, a test and a command line; only numerals up to MMMCMXCIX are meant.
"""
QUERIES = {
    "queries": ["Roman numerals subtractive notation rules", "Python Roman numerals parsing"],
    "ask_user": "",
}
WRONG = '''I parse from the right, as the rules found say.

~~~
File: `roman.py`:
```python
"""Adds Roman numerals."""

import sys

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def value(numeral: str) -> int:
    """The number that a numeral means."""
    return sum(VALUES[letter] for letter in numeral)


if __name__ == "__main__":
    print(sum(value(numeral) for numeral in sys.argv[1:]))
```

File: `test_roman.py`:
```python
"""The subtractive notation counts."""

from roman import value

assert value("IX") == 9, f"IX is {value('IX')}"
assert value("XIV") == 14
print("ok")
```
~~~
'''
PATCH = """The smaller letter before a larger one is taken away.

{"action": "patch"}

roman.py
<<<<<<< SEARCH
    return sum(VALUES[letter] for letter in numeral)
=======
    numbers = [VALUES[letter] for letter in numeral]
    later = [*numbers[1:], 0]
    return sum(-n if n < after else n for n, after in zip(numbers, later))
>>>>>>> REPLACE
"""
REPORT = {
    "text": "The library adds Roman numerals.",
    "claims": [{"text": "Its test passes.", "refs": ["P?"]}, {"text": "It is easy to read."}],
}
ROLES = {
    "now you plan": "planner",
    "now you research": "researcher",
    "now you write code": "coder",
    "now you run commands": "runner",
    "now you report": "reporter",
    "now you look back": "reflector",
}
NO_LESSON = {
    "error_identification": "The first code did not know subtraction.",
    "root_cause_analysis": "It only added.",
    "correct_approach": "Take a smaller letter away.",
    "key_insight": "None for later.",
    "insights": [],
    "tags": [],
}


def role_of(messages: list[Json]) -> str:
    system = str(messages[0]["content"])
    return next(name for words, name in ROLES.items() if words in system)


def text_of(messages: list[Json]) -> str:
    """What the role was told: its first user message."""
    return next(str(m["content"]) for m in messages if m["role"] == "user")


def play(messages: list[Json]) -> Said:
    """Who plays the model: one reply for each stage, in the form of the seed."""
    told, last = text_of(messages), str(messages[-1]["content"])
    match role_of(messages):
        case "planner":
            return Said([PLAN])
        case "researcher":
            return Said([json.dumps(QUERIES)])
        case "coder":
            return Said([WRONG if "later one:\nStep 1:" in told else "No change: step 1 has written it."])
        case "runner" if "repairs left" in last:
            return Said([PATCH])
        case "runner":
            command = "python3 test_roman.py" if "Step 1:" in told else "python3 roman.py XIV IX"
            return Said([json.dumps({"commands": [command]})])
        case "reflector":
            return Said([json.dumps(NO_LESSON)])
        case _:
            proven = next(line for line in told.splitlines() if "`python3 test_roman.py` passed" in line)
            return Said([json.dumps(REPORT).replace("P?", proven.partition("]")[0].removeprefix("- ["))])
