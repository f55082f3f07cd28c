"""A long conversation in a home folder, written as runs write it: what a person who never starts a new chat has.

python -m tests.services.long_session HOME FOLDER MESSAGES

Prints the session's id. Every fifth message is the person's; the others read, edit, run a command and answer.
"""

from __future__ import annotations

import sys
from pathlib import Path

from daiku.domain.events import (
    Edit,
    Event,
    MessageEvent,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.messages import Usage
from daiku.domain.tools import ToolCall
from daiku.domain.work.patches import FileStat
from daiku.texts.text import Text
from daiku.trace.journal import Journal

MESSAGES_A_RUN = 5
ANSWER = """Done: `price` takes a **discount** now, in request {n}.

| file | lines |
|---|---|
| `shop/price.py` | 12 |

```python
def price(count: int, discount: float = 0.0) -> float:
    return PRICE * count * (1 - discount)
```
"""
DIFF = "--- a/shop/price.py\n+++ b/shop/price.py\n@@ -1,2 +1,2 @@\n-PRICE = 1\n+PRICE = 2\n \n"
PRINTED = "".join(f"test_{n} passed\n" for n in range(20))


def request(n: int) -> list[Event]:
    """The events of the run of one request."""
    calls = (
        ToolCall(id=f"r{n}", tool="files/read", args={"path": "shop/price.py"}),
        ToolCall(id=f"e{n}", tool="files/edit", args={"path": "shop/price.py", "edits": []}),
        ToolCall(id=f"c{n}", tool="shell/run", args={"command": "python -m pytest"}),
    )
    events: list[Event] = [
        RunStarted(prompt=f"Request {n}: please make the price depend on the count", model="lab")
    ]
    for call in calls:
        events.append(MessageEvent(role="assistant", text=Text(f"I go on with {call.tool}."), calls=(call,)))
        events.append(Usage(model="lab", prompt_tokens=1200, completion_tokens=80))
        events.append(ToolCallEvent(id=call.id, tool=call.tool, args=call.args))
        if call.tool == "files/edit":
            files = (FileStat(path="shop/price.py", kind="edit", added=1, removed=1),)
            events.append(Edit(files=files, checkpoint_id=f"ckp_{n}", call_id=call.id, diff=DIFF))
        events.append(ToolResponse(id=call.id, tool=call.tool, ok=True, outcome="done", result=PRINTED))
    answer = MessageEvent(role="assistant", text=Text(ANSWER.format(n=n)))
    return [
        *events,
        answer,
        Usage(model="lab", prompt_tokens=1300, completion_tokens=90),
        RunFinished(status="completed"),
    ]


def write(home: Path, folder: str, messages: int) -> str:
    journal = Journal(home / "daiku.db")
    session = journal.add_session(folder, "A long conversation")
    for n in range(messages // MESSAGES_A_RUN):
        journal.writer(session).write(f"run_{n}", None, "coordinator", request(n))
    journal.note_status(session, "completed", "lab")
    journal.close()
    return session


if __name__ == "__main__":
    sys.stdout.write(write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
