"""Words that worlds are drawn from: what a repository is about, how people name commands and folders, what they say."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Purpose(NamedTuple):
    """What a command is for: the words by which people name it in commands, the words that a reader takes for the same,
    and how it is asked for, of one part of the repository or of the whole."""

    verbs: tuple[str, ...]
    read_as: tuple[str, ...]
    of_part: tuple[str, ...]
    of_whole: tuple[str, ...]


PURPOSES: Mapping[str, Purpose] = MappingProxyType(
    {
        "test": Purpose(
            ("test", "tests", "check", "spec", "verify", "unit"),
            ("test", "testing", "tested", "check", "spec", "verify", "unit"),
            ("Run the tests of the {}.", "Do the tests of the {} pass?", "Show by its tests that the {} works."),
            ("Run all the tests there are.", "Do all tests pass?"),
        ),
        "lint": Purpose(
            ("lint", "lints", "style", "vet", "inspect"),
            ("lint", "linter", "linted", "style", "vet", "inspect"),
            ("Lint the {}.", "Is the style of the {} in order? Lint it.", "Have the {} linted."),
            ("Lint everything.", "Is the style in order everywhere? Lint it."),
        ),
        "build": Purpose(
            ("build", "compile", "bundle", "dist", "assemble"),
            ("build", "built", "compile", "bundle", "dist", "assemble"),
            ("Build the {}.", "Does the {} still build?", "Make a new build of the {}."),
            ("Build everything.", "Does it all still build?"),
        ),
        "format": Purpose(
            ("format", "fmt", "tidy", "pretty"),
            ("format", "formatted", "formatter", "fmt", "tidy", "pretty"),
            ("Format the {}.", "Bring the {} into our format.", "The {} is not formatted: mend that."),
            ("Format everything.", "Bring everything into our format."),
        ),
        "generate": Purpose(
            ("gen", "generate", "codegen", "stubs"),
            ("gen", "generate", "generated", "codegen", "stub"),
            ("Generate the code of the {} anew.", "Generate what the {} needs.", "The generated code of the {} is old: renew it."),
            ("Generate all code anew.", "All generated code is old: renew it."),
        ),
        "install": Purpose(
            ("setup", "deps", "bootstrap", "install"),
            ("setup", "dep", "bootstrap", "install", "installed"),
            ("Install what the {} needs.", "Install the packages of the {}.", "The {} lacks packages: install them."),
            ("Install what everything needs.", "Packages are missing: install them."),
        ),
        "start": Purpose(
            ("serve", "start", "up", "launch"),
            ("serve", "start", "started", "up", "launch"),
            ("Start the {}.", "Start the {} and see that it answers.", "Is the {} up? Start it."),
            ("Start everything.", "Is everything up? Start it."),
        ),
    }
)  # fmt: skip

AREAS = tuple(
    str.split(
        "parser billing ledger router mailer scheduler catalog gateway inventory reports uploads invoices sessions notifier"
        " importer exporter cache profiles payments webhooks renderer planner quota audit tariffs geocoder thumbnails feeds"
        " roster archive"
    )
)
"""Parts of a repository."""
FORMS = (
    "{prog} {verb}-{area}", "{prog} {verb} {area}", "{prog} {area}:{verb}", "{prog} run {verb}-{area}", "{prog} -C {area} {verb}",
    "./{folder}/{verb}-{area}", "sh {folder}/{verb}_{area}.sh", "{verb}-{area}",
)  # fmt: skip
WHOLE_FORMS = (
    "{prog} {verb}", "{prog} {verb} --all", "{prog} all:{verb}", "{prog} run {verb}", "{prog} -C . {verb}",
    "./{folder}/{verb}", "sh {folder}/{verb}_all.sh", "./{folder}/{verb}-all",
)  # fmt: skip
SCRIPT_FOLDERS = ("tools", "scripts", "dev", "hack", "ci", "etc", "support", "ops")
SYLLABLES = tuple(str.split("ba bri da dra ke klo lu mi mo na no pa pri ra ru sa sto ta tri vo wi za zu"))
"""Programs have names that nobody knows: two or three of these."""

UNKNOWN = (
    "{}: cannot do that", "{}: error 2", "{}: unknown target", "{}: nothing of that name", "{}: see the manual", "{}: usage: {} WHAT",
)  # fmt: skip
"""What a program says to what it does not know. None of them says what would have been right."""
STALE = (
    "fatal: settings of version 1 are no longer read", "KeyError: 'HOME_OF_DATA'", "3 problems found", "cannot reach the old server",
    "exit status 1", "error: lock file is out of date",
)  # fmt: skip
"""What a script says that was right once."""
DONE = ("done", "ok", "finished in 0.4 s", "all good", "")

NOUNS = tuple(
    str.split("handler fixture migration template schema adapter widget policy serializer job panel probe")
)
"""What files are of: where they go, and how they are named, is agreed on."""
FOLDERS = (
    "src/{}s/", "app/{}s/", "lib/{}/", "internal/{}s/", "core/{}s/", "src/main/{}/", "packages/{}s/", "server/{}s/", "modules/{}/",
)  # fmt: skip
ENDINGS = ("_case", "_spec", "-kind", "_impl", "-v1", "_unit", "-item", "_part", "-def")
THINGS = tuple(
    str.split(
        "refunds vouchers tokens holidays discounts uploads retries badges exports alerts limits drafts merges bounces coupons"
        " receipts avatars digests tickets surveys"
    )
)
FOLDER_PROMPTS = (
    "Add a {noun} for {thing}.",
    "Write the {noun} for {thing}.",
    "{Thing} need a {noun}: add it.",
)
ENDING_PROMPTS = (
    "Add a {noun} for {thing}.",
    "Make a {noun} that deals with {thing}.",
    "{Thing} have no {noun} yet.",
)
FOLDER_REASONS = (
    "{Noun}s belong in `{right}`, nowhere else.",
    "No, every {noun} has to be in `{right}`.",
    "Please put a {noun} into `{right}`.",
    "We keep {noun}s in `{right}`.",
)
ENDING_REASONS = (
    "Always end the name of a {noun} with `{right}`.",
    "From now on the name of a {noun} ends with `{right}`.",
    "In this repository the name of a {noun} must end with `{right}`.",
    "No, a {noun} should have a name that ends with `{right}`.",
)
BARE_REASONS = ("No.", "Not there.", "Wrong, try again.", "")
"""What half of the persons' rejections say: nothing that anybody could learn from."""
