"""TypeScript of the wire contract, made from the pydantic models of daiku.api."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from daiku import api
from daiku.domain.events import EPHEMERAL, EVENTS

Schema: TypeAlias = dict[str, Any]
Use: TypeAlias = Literal["validation", "serialization"]

HEADER = """// GENERATED from server/daiku/api.py and domain/events.py by .dev/gen.py; do not edit, run `npm run gen`.

/** Any JSON object. */
export type JsonObject = { [key: string]: unknown };
"""
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
            return self._name(schema["$ref"].rpartition("/")[2])
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
        lines = [self._property(key, name, p, name in required) for name, p in schema.get("properties", {}).items()]
        if not lines:
            return f"{head}export type {self.names[key]} = Record<string, never>;\n"
        return f"{head}export interface {self.names[key]} {{\n" + "".join(lines) + "}\n"

    def _property(self, key: str, name: str, schema: Schema, required: bool) -> str:  # noqa: FBT001  # private
        type_ = self.type_of(schema)
        parts = type_.split(" | ")
        if self.uses[key] == "serialization":
            # The server leaves absent options out instead of writing null.
            required = "null" not in parts
            type_ = " | ".join(p for p in parts if p != "null")
        # A description of the model itself stands at the model.
        return f"{_comment(schema.get('description'), '  ')}  {name}{'' if required else '?'}: {type_};\n"

    def _array(self, schema: Schema) -> str:
        if "prefixItems" in schema:
            return f"[{', '.join(self.type_of(i) for i in schema['prefixItems'])}]"
        inner = self.type_of(schema.get("items", {}))
        return f"({inner})[]" if " | " in inner else f"{inner}[]"

    def _object(self, schema: Schema) -> str:
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and extra:
            return f"{{ [key: string]: {self.type_of(extra)} }}"
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
    emitter = Emitter(definitions, _names(definitions), _uses(definitions, {(m.__name__, u): k for (m, u), k in keys.items()}))
    out = [HEADER]
    tables = {
        "Requests": ("client to server", api.REQUESTS),
        "ClientRequests": ("server to client, where the client offered it", api.CLIENT_REQUESTS),
    }
    maps = ""
    for title, (direction, table) in tables.items():
        rows = ""
        for method, (params, result) in table.items():
            given: tuple[Use, Use] = ("validation", "serialization")
            if table is api.CLIENT_REQUESTS:
                given = ("serialization", "validation")
            p = emitter.type_of({"$ref": keys[params, given[0]]})
            r = "null" if result is None else emitter.type_of({"$ref": keys[result, given[1]]})
            rows += f"  {json.dumps(method)}: [params: {p}, result: {r}];\n"
        maps += f"\n/** Requests, {direction}: method -> [params, result]. */\nexport interface {title} {{\n{rows}}}\n"
    events = "".join(
        f"  | (Envelope & {{ type: {json.dumps(name)}; data: {emitter.type_of({'$ref': keys[model, 'serialization']})} }})\n"
        for name, model in EVENTS.items()
    )
    for model in (api.InitializationOptions,):
        emitter.type_of({"$ref": keys[model, "validation"]})
    emitter.type_of({"$ref": keys[api.ServerOffer, "serialization"]})
    out += [emitter.done[k] for k in sorted(emitter.done, key=lambda k: emitter.names[k])]
    out.append(ENVELOPE.strip() + "\n")
    out.append(f"/** Everything that happens in a session. Ignore types that you do not know. */\nexport type Chunk =\n{events.rstrip()};\n")
    out.append('export type ChunkType = Chunk["type"];\n')
    out.append("/** Shown, never stored: what they said is in the event that closes them. */\n"
               f"export const EPHEMERAL: ReadonlySet<ChunkType> = new Set({json.dumps(sorted(EPHEMERAL))});\n")
    out.append(maps.strip() + "\n")
    out.append(
        "/** Notifications, server to client: method -> params. */\n"
        "export interface Notifications {\n"
        '  "$/progress": { token: number | string; value: Chunk };\n'
        "}\n"
    )
    out.append(f"/** The version of this contract. */\nexport const PROTOCOL = {api.PROTOCOL};\n")
    out.append(
        "/** Carried out by the server through workspace/executeCommand. */\n"
        f"export const SERVER_COMMANDS = {json.dumps(list(api.COMMANDS), indent=2)} as const;\n"
    )
    return "\n".join(out).replace("ChunkRecord[]", "Chunk[]")


def _models() -> dict[tuple[type[BaseModel], Use], None]:
    found: dict[tuple[type[BaseModel], Use], None] = {}
    for table, uses in ((api.REQUESTS, ("validation", "serialization")), (api.CLIENT_REQUESTS, ("serialization", "validation"))):
        for params, result in table.values():
            found[params, uses[0]] = None  # type: ignore[index]
            if result is not None:
                found[result, uses[1]] = None  # type: ignore[index]
    for event in EVENTS.values():
        found[event, "serialization"] = None
    found[api.InitializationOptions, "validation"] = None
    found[api.ServerOffer, "serialization"] = None
    return found


def _names(definitions: Schema) -> dict[str, str]:
    """`X-Output` is X, `X-Input` is XInput; a name that is taken by both stays apart."""
    names: dict[str, str] = {}
    for key in definitions:
        bare, _, use = key.partition("-")
        names[key] = bare.rpartition("__")[2] + ("Input" if use == "Input" else "")
    return names


def _uses(definitions: Schema, roots: dict[tuple[str, Use], str]) -> dict[str, Use]:
    """How each definition is used, found by following references from the roots."""
    uses: dict[str, Use] = {}

    def visit(key: str, use: Use) -> None:
        if key in uses:
            return
        uses[key] = use
        for ref in _references(definitions[key]):
            visit(ref, use)

    # What is both sent and received with one shape is listed as sent: its options are never null there.
    for (_, use), key in sorted(roots.items(), key=lambda item: item[0][1]):
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
