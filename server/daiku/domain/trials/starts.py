"""The state of a project when a run began: its commit and the files that were changed since, or why that is not known."""

from typing import Literal, TypeAlias

from daiku.domain.base import Frozen

NotKept: TypeAlias = Literal[
    "no_repository", "no_commit", "several_folders", "submodules", "too_large", "secret", "slow", "unreadable"
]
"""Why it is not known how a project stood when a run began. `secret`: a changed file holds one, or is of a kind that does;
`slow`: the run had to go on before all was read."""


class ChangedFile(Frozen):
    """A file that is not as the last commit has it, by its path from the repository's top. `content` is base64: its bytes,
    or where a link leads."""

    path: str
    kind: Literal["file", "link", "gone"] = "file"
    executable: bool = False
    content: str = ""


class ProjectStart(Frozen):
    """How the project in the folder `root` stood when a run began: the last commit, and what was `changed` since, in files
    and in the editor. `inside` is the project's folder within its repository. With `why` nothing else is known."""

    root: str
    commit: str = ""
    inside: str = "."
    changed: tuple[ChangedFile, ...] = ()
    why: NotKept | None = None
