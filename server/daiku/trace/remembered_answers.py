"""Everything that a person allowed or rejected for always in one workspace: listed, and taken back."""

from __future__ import annotations

from typing import Literal

from daiku.core.guard.grant_words import grant_in_words
from daiku.dataclass import dataclass
from daiku.texts.text import Text, text
from daiku.trace.consent import ConsentStore
from daiku.trace.grants import GrantStore

SERVER = "server:"
"""Before the name of an MCP server that the person agreed to, as its key here."""


@dataclass(frozen=True, slots=True)
class RememberedAnswer:
    """One answer: its `key`, and in words `what` it is about."""

    key: str
    answer: Literal["allow", "reject"]
    what: Text


def all_answers(grants: GrantStore, consents: ConsentStore, workspace: str) -> tuple[RememberedAnswer, ...]:
    """Every answer that counts in `workspace`. Raises DaikuError."""
    answers = [
        RememberedAnswer(key, "allow" if answer == "allow" else "reject", grant_in_words(key) or Text(key))
        for key, answer in grants.all(workspace)
    ]
    servers = [
        RememberedAnswer(f"{SERVER}{name}", consent.answer, text("guard.remember_server", name=name))
        for name, consent in consents.all(workspace)
    ]
    return (*answers, *servers)


def revoke_answer(grants: GrantStore, consents: ConsentStore, workspace: str, key: str) -> bool:
    """Forget the answer to `key`, so that it is asked again; False where there was none. Raises DaikuError."""
    if all(one.key != key for one in all_answers(grants, consents, workspace)):
        return False
    if key.startswith(SERVER):
        consents.forget(workspace, key.removeprefix(SERVER))
    else:
        grants.revoke(workspace, key)
    return True
