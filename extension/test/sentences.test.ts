// Nothing in the extension is decided by reading a sentence: neither one of the server's nor one of its own.

import { parseSync } from "vite"; // comes with vitest
import { describe, expect, it } from "vitest";
import { modulesIn } from "./lab/modules";

type Node = Record<string, unknown> & { type: string };

const SENTENCE = /\p{L}{2,}[,;:.!?)]*\s+\p{L}{2,}|^[A-Z][a-z]{2,}[.:!?]\s*$|[ぁ-んァ-ヶ一-龯]{2,}/u;
const SEEKING = /^(?:includes|startsWith|endsWith|indexOf|lastIndexOf|match|matchAll|search|test|exec|split|has)$/;

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

/** Whether the value of `node` is a sentence: words, a pattern of words, or a text of the catalogue. */
function says(node: unknown): boolean {
  if (!isNode(node)) return false;
  if (node.type === "TemplateLiteral") {
    const texts = (node.quasis as { value: { raw: string } }[]).map((each) => each.value.raw);
    return SENTENCE.test(texts.join("X9"));
  }
  if (node.type === "CallExpression") return isNode(node.callee) && node.callee.name === "t";
  if (node.type === "ArrayExpression") return (node.elements as unknown[]).some(says);
  if (node.type !== "Literal") return false;
  const pattern = node.regex as { pattern: string } | undefined;
  const text = pattern?.pattern.replace(/\\[a-z][+*?]*/g, " ") ?? node.value;
  return typeof text === "string" && SENTENCE.test(text);
}

/** What `node` compares with or looks for. */
function needles(node: Node): unknown[] {
  if (node.type === "BinaryExpression" && /^[!=]==?$/.test(String(node.operator))) return [node.left, node.right];
  if (node.type === "SwitchCase") return [node.test];
  const callee = node.type === "CallExpression" ? node.callee : undefined;
  if (!isNode(callee) || callee.type !== "MemberExpression" || !isNode(callee.property)) return [];
  return SEEKING.test(String(callee.property.name)) ? [callee.object, ...(node.arguments as unknown[])] : [];
}

function* compared(node: unknown): Generator<Node> {
  if (Array.isArray(node)) for (const each of node) yield* compared(each);
  if (!isNode(node)) return;
  if (needles(node).some(says)) yield node;
  for (const [key, value] of Object.entries(node)) if (key !== "parent") yield* compared(value);
}

const places = (name: string, text: string): string[] =>
  [...compared(parseSync(name, text, { lang: name.endsWith("x") ? "tsx" : "ts" }).program)].map(
    ({ start, end }) => `${name}: ${text.slice(Number(start), Math.min(Number(end), Number(start) + 80))}`,
  );

/** What is read although it is a sentence, and who wrote it. */
const WRITTEN_BY_OTHERS: readonly (readonly [where: string, who: string])[] = [
  ["src/pure/view/toolFace.ts: patch.matchAll(", "a model: the heads of its patch"],
  ["src/server/rpc.ts: /^Client is not running|", "the language client: it has no code for that"],
];

describe("sentences", () => {
  it("of ours decide nothing", () => {
    const found = modulesIn("src", "webview").flatMap(({ name, text }) => places(name, text));
    const expected = WRITTEN_BY_OTHERS.map(([where]): unknown => expect.stringContaining(where));
    expect(found).toEqual(expected);
  });

  it.each([
    'if (result.text === "Nobody is there.") stop();',
    'if (result.text.includes("nobody is there")) stop();',
    "if (error.message.startsWith(`It was not run`)) stop();",
    "if (/nobody\\s+is/.test(text)) stop();",
    'if (["Go on", "Stop here"].includes(answer)) stop();',
    'if (answer === t("Reject")) stop();',
    'switch (text) { case "It is done.": stop(); }',
    'if (text === "承認されました") stop();',
  ])("are found where they would: %s", (line) => {
    expect(places("a.ts", line)).toHaveLength(1);
  });
});
