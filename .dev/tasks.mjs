// Many short programs side by side: each is one line when it went well, and all its words when it did not.

import os from "node:os";
import { run } from "./run.mjs";
import { bold, green, red, say, seconds } from "./say.mjs";

const MOST_LINES = 150;

/** The end of a long report: the first hundred complaints of one kind say no more than the last. */
function shortened(text) {
  const lines = text.trim().split("\n");
  return lines.length <= MOST_LINES
    ? lines.join("\n")
    : [`… ${lines.length - MOST_LINES} lines above`, ...lines.slice(-MOST_LINES)].join("\n");
}

/**
 * Runs tasks `{name, command, args, cwd?, env?}` a few at a time, in the order given.
 * Answers with what each said: `{name, code, text}`.
 */
export async function runTasks(tasks, { atOnce = Math.max(2, os.availableParallelism()) } = {}) {
  const waiting = [...tasks];
  const results = [];
  const lane = async () => {
    for (let task = waiting.shift(); task; task = waiting.shift()) {
      const since = Date.now();
      const { code, text } = await run(task.command, task.args, { cwd: task.cwd, env: task.env, capture: true });
      results.push({ name: task.name, code, text });
      say(`${code === 0 ? green("✓") : red("✗")} ${task.name} ${seconds(since)}`);
      if (code !== 0) say(`${bold(`--- ${task.name}`)}\n${shortened(text)}\n${bold("---")}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return results;
}
