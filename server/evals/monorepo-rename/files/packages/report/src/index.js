import { readFileSync } from "node:fs";
import * as money from "../../money/src/index.js";

const templates = JSON.parse(readFileSync(new URL("../templates.json", import.meta.url), "utf8"));

/** A stored template filled in: each value is a list of arguments for the function that the template names. */
export function fill(name, ...values) {
  const template = templates[name];
  return template.text.replace(/\{(\d+)\}/g, (_, at) => money[template.with[at]](...values[at]));
}
