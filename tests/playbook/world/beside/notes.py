"""Notes that a person who knows the repository writes in half an hour, once, before the first task."""

from __future__ import annotations

from tests.playbook.world.attempts import Attempt, Task
from tests.playbook.world.beside.known import within
from tests.playbook.world.drawn import Convention, World, drawn

_WHOLE = {
    "test": "Tests",
    "lint": "Lint",
    "build": "Build",
    "format": "Format",
    "generate": "Generate the code",
    "install": "Install",
    "start": "Start",
}


def notes_of(world: World) -> tuple[str, ...]:
    """The text, a line for each thing: every rule on where files go and what they are called, every command for the whole
    repository, and the commands of that one part of it which its writer works on (the first). The other parts' commands
    are not in it: nobody knows all of a repository by heart, and half an hour is over. It is right when it is written,
    says it in as few words as the actor can read, and nobody looks at it again."""
    areas = [each.name.partition(" ")[2] for each in world.conventions if each.kind == "command"]
    own = next((area for area in areas if area), "")
    return tuple(line_of(each, each.right) for each in world.conventions if _is_known(each, own))


def _is_known(convention: Convention, own: str) -> bool:
    return convention.kind != "command" or convention.name.partition(" ")[2] in ("", own)


def line_of(convention: Convention, right: str) -> str:
    """A convention in a few words."""
    what, _, of = convention.name.partition(" ")
    match convention.kind:
        case "command":
            return f"{_WHOLE[what]}{f' ({of})' if of else ', everything'}: `{right}`"
        case "folder":
            return f"Every {of} goes into `{right}`"
        case "ending":
            return f"The name of a {of} ends with `{right}`"


class Notes:
    """The notes in every prompt, whole; the actor reads what they say on its task. They learn nothing."""

    def __init__(self, seed: int, *, budget: int, name: str = "notes") -> None:
        self.name = name
        self._text = within(notes_of(drawn(seed)), budget)

    def advice(self, task: Task) -> tuple[str, ...]:
        return self._text

    def learn(self, attempt: Attempt) -> None:
        pass
