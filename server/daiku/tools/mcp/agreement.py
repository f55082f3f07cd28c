"""The user's consent to an MCP server: the questions to ask, and the tools that are allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.events import ApprovalDecision
from daiku.domain.servers import Consent, ConsentQuestion
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.tools.mcp.definitions import Listing, OfferedTool, describe_changes, hash_text
from daiku.tools.mcp.launch import Launch, find_token_path


@dataclass(frozen=True, slots=True)
class McpHost:
    """The environment of a server.

    `lookup` and `remember` store consents; `on_change` is called when the offered tools change; `notify`
    shows the user a message; `has_user` returns True if a user is there.
    """

    home: Path
    lookup: Callable[[], Consent | None]
    remember: Callable[[Consent], None]
    on_change: Callable[[], None]
    notify: Callable[[Text], None]
    has_user: Callable[[], bool]


class ServerConsent:
    """The user's consent to a configured server. `problem`: why the server is unusable whatever they answer."""

    def __init__(self, launch: Launch, host: McpHost, problem: Text) -> None:
        self.launch = launch
        self.problem = problem
        self.listing = Listing()
        """The server's current offer."""
        self._host = host
        self._consent: Consent | None = None
        self._is_loaded = False
        self._declined = ""

    @property
    def consent(self) -> Consent | None:
        """The user's consent to exactly this launch, once or stored; None if there is none."""
        if not self._is_loaded:
            self._is_loaded = True
            stored = self._host.lookup()
            self._consent = stored if stored is not None and stored.launch == self.launch.digest else None
        return self._consent

    @property
    def is_allowed(self) -> bool:
        """True if the server may be used."""
        consent = self.consent
        return not self.problem and consent is not None and consent.answer == "allow"

    def find_question(self) -> ConsentQuestion | None:
        """Return the question that the user must answer before this server, or more of it, is used."""
        if self.problem:
            return None
        if self.consent is None:
            return ConsentQuestion(
                server=self.launch.name,
                key=f"mcp:{self.launch.name}:{self.launch.digest}",
                preview=self.launch.preview,
                why=joined(
                    "clauses",
                    [text("mcp.settings_name", name=self.launch.name), text("mcp.not_before_allowed")],
                ),
                remember=text("mcp.remember_use", name=self.launch.name),
            )
        differs = self.describe_changes()
        if not differs or not self.is_allowed or self._declined == self._hash_listing():
            return None
        return ConsentQuestion(
            server=self.launch.name,
            key=f"mcp:{self.launch.name}:{self._hash_listing()}",
            preview=text("mcp.offer_changed", name=self.launch.name, differs=differs),
            why=text("mcp.changed_since", name=self.launch.name),
            remember=text("mcp.remember_now", name=self.launch.name),
        )

    def record_answer(self, question: ConsentQuestion, decision: ApprovalDecision) -> None:
        """Apply the user's decision: `once` holds for this process, `always` is stored."""
        is_allowed = decision in ("allow_once", "allow_always")
        if question.key.endswith(self.launch.digest):
            self._consent = Consent(launch=self.launch.digest, answer="allow" if is_allowed else "reject")
        elif not is_allowed:
            self._declined = self._hash_listing()
            return
        elif self._consent is not None:
            self._consent = self._consent.model_copy(update={"tools": self.listing.digests})
            self._host.on_change()
        if decision.endswith("always") and self._consent is not None:
            self._host.remember(self._consent)

    def forget(self) -> None:
        """Delete the consent and the sign-in."""
        self._consent, self._is_loaded, self._declined = None, False, ""
        find_token_path(self._host.home, self.launch.settings.url).unlink(missing_ok=True)

    def describe_changes(self) -> Text:
        """Describe what is new or changed since the user consented; empty if nothing is."""
        consent = self.consent
        agreed = consent.tools if consent is not None else None
        return NO_TEXT if agreed is None else describe_changes(agreed, self.listing)

    def _hash_listing(self) -> str:
        return hash_text(repr(sorted(self.listing.digests.items())))

    @property
    def offered_tools(self) -> tuple[OfferedTool, ...]:
        """The tools that the user consented to and that have not changed."""
        consent = self.consent
        agreed = (consent.tools if consent is not None else None) or {}
        return tuple(tool for tool in self.listing.tools if agreed.get(tool.name) == tool.digest)

    @property
    def instructions(self) -> str:
        """The server's instructions, if the user consented to them."""
        consent = self.consent
        agreed = (consent.tools if consent is not None else None) or {}
        instructions = self.listing.instructions
        return instructions if instructions and agreed.get("") == self.listing.digests[""] else ""

    def update_listing(self, listing: Listing) -> None:
        """Store the server's new offer. The user's consent covers the first one."""
        self.listing = listing
        consent = self.consent
        if consent is not None and consent.tools is None:
            is_stored = self._host.lookup() == consent
            self._consent = consent.model_copy(update={"tools": listing.digests})
            if is_stored:
                self._host.remember(self._consent)
        self._host.on_change()
