// One of the examples that Python's tests play too, as a process: a model (and a little web) on loopback.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { at } from "../../../.dev/places.mjs";

/**
 * Starts the services of `tests/services/played.py`. Answers with `{env, stop}`; `env` connects Daiku to them:
 * the `compatible` provider, and a search engine.
 */
export async function startPlayed(name) {
  const python = process.env.DAIKU_DEV_PYTHON || "python3";
  const child = spawn(python, ["-m", "tests.services.played", name], {
    cwd: at(),
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([
    once(lines, "line"),
    once(child, "exit").then(([code]) => Promise.reject(new Error(`${name} ended at once: exit code ${code}`))),
  ]);
  const { model, name: id, web } = JSON.parse(line);
  const env = {
    DAIKU_LLM__MODEL: `compatible/${id}`,
    DAIKU_LLM__COMPATIBLE__BASE_URL: model,
    DAIKU_RESEARCH__ENGINE: "searxng",
    DAIKU_RESEARCH__BASE_URL: web,
    NO_PROXY: "127.0.0.1,localhost",
  };
  const stop = async () => {
    if (child.exitCode !== null) return;
    child.stdin.end();
    await once(child, "exit");
  };
  return { env, stop };
}
