"""TypeScript of the wire contract, made from the pydantic models of daiku.api."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from daiku import api
from daiku.domain.events import EPHEMERAL, EVENTS
from daiku.fronts.lsp.requests.methods import METHODS
from daiku.models.table import PROVIDERS

Schema: TypeAlias = dict[str, Any]
Use: TypeAlias = Literal["validation", "serialization"]
Roots: TypeAlias = dict[tuple[type[BaseModel], Use], str]
Requests: TypeAlias = Mapping[str, tuple[type[BaseModel], type[BaseModel] | None]]

REQUESTS = {name: (method.params, method.result) for name, method in METHODS.items()}
HEADER = """// GENERATED from server/daiku/api and domain/events.py by .dev/gen.py; do not edit, run `npm run gen`.

/** Any JSON object. */
export type JsonObject = { [key: string]: unknown };
"""
WRITTEN_BY_HAND = {"JsonValue": "unknown", "ChunkRecord": "Chunk"}
ENVELOPE = """
/** What every Chunk carries. `seq` rises by one in a session; `time` is ISO-8601 UTC with milliseconds. */
export interface Envelope {
  seq: number;
  /** Set where one chunk stands for the adjacent deltas `seqFrom`…`seq` (a slow client). */
  seqFrom?: number;
  time: string;
  session: string;
  run: string;
  /** The run that this one is nested in. */
  parent?: string;
  agent: string;
}
"""


@dataclass(frozen=True, slots=True)
class Emitter:
    """Turns the definitions of one JSON schema into TypeScript; `names` maps schema names to ours."""

    definitions: Schema
    names: dict[str, str]
    uses: dict[str, Use]
    done: dict[str, str] = field(default_factory=dict[str, str])

    def type_of(self, schema: Schema) -> str:
        """A TypeScript type expression."""
        if "$ref" in schema:
            key = schema["$ref"].rpartition("/")[2]
            return WRITTEN_BY_HAND.get(key) or self._name(key)
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return " | ".join(json.dumps(v) for v in schema["enum"])
        if (options := schema.get("anyOf") or schema.get("oneOf")) is not None:
            return " | ".join(dict.fromkeys(self.type_of(o) for o in options))
        match schema.get("type"):
            case "string":
                return "string"
            case "integer" | "number":
                return "number"
            case "boolean":
                return "boolean"
            case "null":
                return "null"
            case "array":
                return self._array(schema)
            case "object":
                return self._object(schema)
            case _:
                return "unknown"

    def interface(self, key: str) -> str:
        """The whole declaration of one definition."""
        schema = self.definitions[key]
        head = _comment(schema.get("description"), "")
        if "properties" not in schema and schema.get("type") != "object":
            return f"{head}export type {self.names[key]} = {self.type_of(schema)};\n"
        required = set(schema.get("required", ()))
        lines = [
            self._property(key, name, p, name in required) for name, p in schema.get("properties", {}).items()
        ]
        if not lines:
            return f"{head}export type {self.names[key]} = Record<string, never>;\n"
        return f"{head}export interface {self.names[key]} {{\n" + "".join(lines) + "}\n"

    def _property(self, key: str, name: str, schema: Schema, required: bool) -> str:
        type_ = self.type_of(schema)
        parts = type_.split(" | ")
        if self.uses[key] == "serialization":
            # The server leaves absent options out instead of writing null.
            required = "null" not in parts
            type_ = " | ".join(p for p in parts if p != "null")
        return f"{_comment(schema.get('description'), '  ')}  {name}{'' if required else '?'}: {type_};\n"

    def _array(self, schema: Schema) -> str:
        if "prefixItems" in schema:
            return f"[{', '.join(self.type_of(i) for i in schema['prefixItems'])}]"
        inner = self.type_of(schema.get("items", {}))
        return f"({inner})[]" if " | " in inner else f"{inner}[]"

    def _object(self, schema: Schema) -> str:
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and extra:
            value = self.type_of(extra)
            return "JsonObject" if value == "unknown" else f"{{ [key: string]: {value} }}"
        return "JsonObject"

    def _name(self, key: str) -> str:
        if key not in self.done:
            self.done[key] = ""  # a type may contain itself
            self.done[key] = self.interface(key)
        return self.names[key]


def contract() -> str:
    """The text of contract.gen.ts."""
    models = _models()
    chosen, whole = models_json_schema(list(models), by_alias=True, ref_template="#/$defs/{model}")
    definitions: Schema = whole["$defs"]
    keys = {pair: str(ref["$ref"]).rpartition("/")[2] for pair, ref in chosen.items()}
    emitter = Emitter(definitions, _names(definitions), _uses(definitions, keys))

    def named(model: type[BaseModel] | None, use: Use) -> str:
        return "null" if model is None else emitter.type_of({"$ref": keys[model, use]})

    def table(rows: Requests, params: Use, result: Use) -> str:
        return "".join(
            f"  {json.dumps(method)}: [params: {named(p, params)}, result: {named(r, result)}];\n"
            for method, (p, r) in rows.items()
        )

    requests = table(REQUESTS, "validation", "serialization")
    asked = table(api.CLIENT_REQUESTS, "serialization", "validation")
    events = "".join(
        f"\n  | (Envelope & {{ type: {json.dumps(name)}; data: {named(event, 'serialization')} }})"
        for name, event in EVENTS.items()
    )
    named(api.InitializationOptions, "validation")
    named(api.ServerOffer, "serialization")
    interfaces = "\n".join(emitter.done[k] for k in sorted(emitter.done, key=lambda k: emitter.names[k]))
    keyed = json.dumps({name: entry.label for name, entry in PROVIDERS.items() if entry.key_env}, indent=2)
    kinds = ("key", "server")
    by_need = {need: [entry.label for entry in PROVIDERS.values() if entry.needs == need] for need in kinds}
    ephemeral, commands = json.dumps(sorted(EPHEMERAL)), json.dumps(list(api.COMMANDS), indent=2)
    known = json.dumps(list(EVENTS), indent=2)
    return f"""{HEADER}
{interfaces}
{ENVELOPE.strip()}

/** Everything that happens in a session. Ignore types that you do not know. */
export type Chunk ={events};

export type ChunkType = Chunk["type"];

/** The types that this contract knows; a newer server may have more. */
export const CHUNK_TYPES: ReadonlySet<ChunkType> = new Set({known});

/** Shown, never stored: what they said is in the event that closes them. */
export const EPHEMERAL: ReadonlySet<ChunkType> = new Set({ephemeral});

/** Requests, client to server: method -> [params, result]. */
export interface Requests {{
{requests}}}

/** Requests, server to client, where the client offered it: method -> [params, result]. */
export interface ClientRequests {{
{asked}}}

/** Notifications, server to client: method -> params. */
export interface Notifications {{
  "$/progress": {{ token: number | string; value: Chunk }};
}}

/** Providers of models that take an API key, with their names for people. */
export const KEYED_PROVIDERS = {keyed} as const;

/** Names of providers by what a person needs for them: a key, or a server on their own machine. */
export const PROVIDERS_BY_NEED = {json.dumps(by_need, indent=2)};

/** The version of this contract. */
export const PROTOCOL = {api.PROTOCOL};

/** Carried out by the server through workspace/executeCommand. */
export const SERVER_COMMANDS = {commands} as const;
"""


def _models() -> dict[tuple[type[BaseModel], Use], None]:
    """Every model at the ends of the contract, with how it is used; params are read, results written."""
    found: dict[tuple[type[BaseModel], Use], None] = {}
    tables: tuple[tuple[Requests, Use, Use], ...] = (
        (REQUESTS, "validation", "serialization"),
        (api.CLIENT_REQUESTS, "serialization", "validation"),
    )
    for rows, params_use, result_use in tables:
        for params, result in rows.values():
            found[params, params_use] = None
            if result is not None:
                found[result, result_use] = None
    for event in EVENTS.values():
        found[event, "serialization"] = None
    found[api.InitializationOptions, "validation"] = None
    found[api.ServerOffer, "serialization"] = None
    return found


def _names(definitions: Schema) -> dict[str, str]:
    """Return the generated name of each definition: `X-Output` is X, `X-Input` is XInput.

    If an event and another type share a name, the other one gets its module as a prefix: `PlaybookDelta`.
    """
    names: dict[str, str] = {}
    for key in definitions:
        bare, _, use = key.partition("-")
        module, _, name = bare.rpartition("__")
        owner = module.rpartition("__")[2]
        apart = owner.title() if owner not in ("", "events") else ""
        names[key] = apart + name + ("Input" if use == "Input" else "")
    return names


def _uses(definitions: Schema, roots: Roots) -> dict[str, Use]:
    """How each definition is used, found by following references from the roots."""
    uses: dict[str, Use] = {}

    def visit(key: str, use: Use) -> None:
        if key in uses:
            return
        uses[key] = use
        for ref in _references(definitions[key]):
            visit(ref, use)

    # What is both sent and received with one shape is listed as sent: its options are never null there.
    for (_, use), key in sorted(roots.items(), key=lambda item: item[0][1]):  # serialization first
        visit(key, use)
    return uses


def _references(schema: Any) -> list[str]:
    if isinstance(schema, dict):
        found = [schema["$ref"].rpartition("/")[2]] if "$ref" in schema else []
        return found + [r for v in schema.values() for r in _references(v)]
    return [r for v in schema for r in _references(v)] if isinstance(schema, list) else []


def _comment(text: str | None, indent: str) -> str:
    if not text:
        return ""
    lines = " ".join(text.split())
    return f"{indent}/** {lines} */\n"
