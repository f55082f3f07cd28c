// The .vsix as people install it: on its first start it makes the server a Python environment of its own.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { packAll } from "../../.dev/package.mjs";
import { CACHE, pythonIn, workFolder } from "../../.dev/places.mjs";
import { inEditor, until } from "./lab/lab.mjs";
import { Panel } from "./panel.mjs";

const caches = { PIP_CACHE_DIR: path.join(CACHE, "pip"), UV_CACHE_DIR: path.join(CACHE, "uv") };
const asInstalled = { DAIKU_DEV_SERVER: "", PYTHONPATH: "", ...caches };

/** The server's environment in the extension's storage, once it is complete. */
function environmentIn(folder) {
  const storage = path.join(folder, "user-data", "User", "globalStorage", "daiku.daiku");
  const names = existsSync(storage) ? readdirSync(storage).filter((name) => name.startsWith("server-")) : [];
  return names.map((name) => path.join(storage, name)).find((place) => existsSync(path.join(place, ".daiku-ready")));
}

test("the package makes a private environment and starts the server from it", { timeout: 300_000 }, async (t) => {
  const vsix = await packAll(workFolder("package"));
  await inEditor({ name: "package", vsix, env: asInstalled }, async ({ server, workbench }) => {
    // The chat is there at once: it says what is under way and for how long, and offers nothing that would only wait.
    const start = performance.now();
    const { frame } = await Panel.open(workbench);
    await frame.locator(".banner", { hasText: /\d+ s \(first time only/ }).waitFor({ timeout: 30_000 });
    t.diagnostic(`${Math.round(performance.now() - start)} ms until the chat says what is under way`);
    assert.equal(await frame.locator(".examples button:disabled").count(), 3);
    await workbench.shot("packaged-1-installing");
    const place = await until("the private environment", () => environmentIn(server.folder), 200_000);
    const where = execFileSync(pythonIn(place), ["-I", "-c", "import daiku; print(daiku.__file__)"], {
      encoding: "utf8",
    });
    assert.ok(where.startsWith(place), `the server comes from ${where}`);
    const running = () => execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).includes(`${pythonIn(place)} `);
    await until("the server to run from it", running, 60_000);
    await frame.locator(".banner").waitFor({ state: "detached", timeout: 60_000 });
    assert.equal(await frame.locator(".examples button:disabled").count(), 0);
    await workbench.shot("packaged-2-ready");
  });
});
