"""The person's consent to one MCP server: what is asked, and which of its tools are allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.events import ApprovalDecision
from daiku.domain.servers import Consent, ConsentQuestion
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.tools.mcp.definitions import Listing, OfferedTool, changes, digest_of
from daiku.tools.mcp.launch import Launch, token_file


@dataclass(frozen=True, slots=True)
class McpHost:
    """What a server is given by those around it. `lookup` and `remember` keep consents over restarts;
    `changed` hears when what it offers is another; `say` tells the person something."""

    home: Path
    lookup: Callable[[], Consent | None]
    remember: Callable[[Consent], None]
    changed: Callable[[], None]
    say: Callable[[Text], None]
    person: Callable[[], bool]


class ServerConsent:
    """The person's consent to one configured server.
    `problem` says why the server cannot be used whatever they answer."""

    def __init__(self, launch: Launch, host: McpHost, problem: Text) -> None:
        self.launch = launch
        self.problem = problem
        self.listing = Listing()
        """What the server offers now."""
        self._host = host
        self._consent: Consent | None = None
        self._looked = False
        self._declined = ""

    @property
    def consent(self) -> Consent | None:
        """Return the person's consent for exactly this launch, once or stored; None if there is none."""
        if not self._looked:
            self._looked = True
            kept = self._host.lookup()
            self._consent = kept if kept is not None and kept.launch == self.launch.digest else None
        return self._consent

    @property
    def allowed(self) -> bool:
        """Whether the server may be used."""
        consent = self.consent
        return not self.problem and consent is not None and consent.answer == "allow"

    def question(self) -> ConsentQuestion | None:
        """What the person has to be asked before (more of) this server can be used."""
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
        differs = self.differences()
        if not differs or not self.allowed or self._declined == self._digest():
            return None
        return ConsentQuestion(
            server=self.launch.name,
            key=f"mcp:{self.launch.name}:{self._digest()}",
            preview=text("mcp.offer_changed", name=self.launch.name, differs=differs),
            why=text("mcp.changed_since", name=self.launch.name),
            remember=text("mcp.remember_now", name=self.launch.name),
        )

    def answer(self, question: ConsentQuestion, decision: ApprovalDecision) -> None:
        """Take the person's word: `once` holds for this process, `always` is kept."""
        yes = decision in ("allow_once", "allow_always")
        if question.key.endswith(self.launch.digest):
            self._consent = Consent(launch=self.launch.digest, answer="allow" if yes else "reject")
        elif not yes:
            self._declined = self._digest()
            return
        elif self._consent is not None:
            self._consent = self._consent.model_copy(update={"tools": self.listing.digests})
            self._host.changed()
        if decision.endswith("always") and self._consent is not None:
            self._host.remember(self._consent)

    def forget(self) -> None:
        """Delete the consent and the sign-in."""
        self._consent, self._looked, self._declined = None, False, ""
        token_file(self._host.home, self.launch.settings.url).unlink(missing_ok=True)

    def differences(self) -> Text:
        """Describe what is new or changed since the person agreed; empty if nothing is."""
        consent = self.consent
        seen = consent.tools if consent is not None else None
        return NO_TEXT if seen is None else changes(seen, self.listing)

    def _digest(self) -> str:
        return digest_of(repr(sorted(self.listing.digests.items())))

    @property
    def offered(self) -> tuple[OfferedTool, ...]:
        """The tools that the person agreed to, as they are now."""
        consent = self.consent
        seen = (consent.tools if consent is not None else None) or {}
        return tuple(tool for tool in self.listing.tools if seen.get(tool.name) == tool.digest)

    @property
    def instructions(self) -> str:
        """What the server says about itself, where the person agreed to it."""
        consent = self.consent
        seen = (consent.tools if consent is not None else None) or {}
        told = self.listing.instructions
        return told if told and seen.get("") == self.listing.digests[""] else ""

    def update_listing(self, listing: Listing) -> None:
        """Take the server's new tool list; the first list is stored as the one that the person consented to."""
        self.listing = listing
        consent = self.consent
        if consent is not None and consent.tools is None:
            kept = self._host.lookup() == consent
            self._consent = consent.model_copy(update={"tools": listing.digests})
            if kept:
                self._host.remember(self._consent)
        self._host.changed()
