// A person opens VS Code, and Daiku is there.

import { test } from "node:test";
import { inEditor } from "./lab/lab.mjs";

test("Daiku answers from the command palette", { timeout: 180_000 }, async () => {
  await inEditor({ name: "palette" }, async ({ workbench }) => {
    await workbench.command("Daiku: New Chat");
    await workbench.shot("new-chat");
  });
});
