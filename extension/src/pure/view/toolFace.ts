// How a tool call is displayed: an icon, a verb and its subject.

import type { JsonObject } from "../../contract.gen";
import { showControls } from "../text/ansi";
import { TOOL_FACES } from "./tables.gen";

interface ToolFace {
  /** A codicon. */
  icon: string;
  /** To be translated. */
  title: string;
  /** A path, a command, a pattern: shown as code, with hidden characters made visible. */
  subject: string;
}

/** The face of a call; a tool that is not ours shows its own name and its shortest telling argument. */
export function toolFace(tool: string, args: JsonObject): ToolFace {
  const face = Object.hasOwn(TOOL_FACES, tool) ? TOOL_FACES[tool] : undefined;
  if (!face) return { icon: "plug", title: tool, subject: showControls(shortestText(args)) };
  const { icon, title, subject } = face;
  return {
    icon,
    title,
    subject: showControls(
      subject.replace(/\[([^\]]*)\]/g, (_, part) => ifAny(part, args)).replace(PLACE, valueIn(args)),
    ),
  };
}

const PLACE = /\{([^}]+)\}/g;

const valueIn =
  (args: JsonObject) =>
  (_: string, names: string): string =>
    names
      .split("|")
      .map((name) => (/^\w+$/.test(name) ? argumentOf(name, args) : name))
      .find((value) => value !== "") ?? "";

const ifAny = (part: string, args: JsonObject): string =>
  [...part.matchAll(PLACE)].some(([place, names = ""]) => valueIn(args)(place, names) !== "") ? part : "";

function argumentOf(name: string, args: JsonObject): string {
  if (name === "lines") return lines(args);
  if (name === "files") return filesIn(textOf(args.patch));
  if (name === "agents") return agentsIn(args.requests);
  return textOf(args[name]);
}

const textOf = (value: unknown): string =>
  typeof value === "string"
    ? value
    : typeof value === "number"
      ? String(value)
      : Array.isArray(value)
        ? value.map(textOf).join(", ")
        : "";

function lines(args: JsonObject): string {
  const [start, end] = [textOf(args.start_line) || textOf(args.line), textOf(args.end_line)];
  if (!start && !end) return "";
  return end && end !== start ? `:${start || 1}–${end}` : `:${start}`;
}

function filesIn(patch: string): string {
  const names = [...patch.matchAll(/^(?:\+\+\+ (?:b\/)?|\*\*\* (?:Add|Update|Delete) File: )(\S.*)$/gm)];
  return [...new Set(names.map((match) => match[1]))].join(", ");
}

/** To whom the requests go that are handed over side by side. */
const agentsIn = (requests: unknown): string =>
  Array.isArray(requests) ? requests.map((one: JsonObject | null) => textOf(one?.agent)).join(", ") : "";

function shortestText(args: JsonObject): string {
  const texts = Object.values(args).filter((value): value is string => typeof value === "string" && value !== "");
  return texts.sort((a, b) => a.length - b.length)[0] ?? "";
}
