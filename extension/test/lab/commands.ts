// All commands, registered over real parts and a server that answers as a test says.

import { registerCommands } from "../../src/commands/register";
import { createChanges } from "../../src/review/changes";
import { createLessonDiffs } from "../../src/review/lessonDiff";
import { createOriginals } from "../../src/review/originals";
import { createChangesTree } from "../../src/trees/changes";
import { createPlanTree } from "../../src/trees/plan";
import { createPlaybookTree } from "../../src/trees/playbook";
import { createSessionsTree } from "../../src/trees/sessions";
import { createWorkTree } from "../../src/trees/work";
import { commands, quietLog as log, memento, secretStore, Uri } from "../editor/editor";
import { chatWorld } from "./chat";
import type { Answers } from "./server";

/** `run`: as a key or a menu runs a command, with what the menu hands over. */
export function commandWorld(answers: Answers = {}, failure?: { kind: "terminal"; text: string }) {
  const world = chatWorld({ "daiku/changes/list": () => ({ files: [] }), ...answers });
  const { chat, server, posted } = world;
  const changes = createChanges(chat, server, log);
  const calls: string[] = [];
  const secrets = secretStore();
  const everywhere = memento();
  registerCommands({
    ...{ chat, server, log: { ...log, error: (line) => void calls.push(String(line)) }, changes, secrets },
    models: { chosen: "lab/one", select: async () => void calls.push("select") },
    panel: { reveal: async () => void calls.push("reveal"), post: (message) => posted.push(message) },
    terminals: { lastFailure: () => failure },
    originals: createOriginals(changes),
    plans: createPlanTree(chat, () => undefined),
    sessions: createSessionsTree(chat, server),
    changesTree: createChangesTree(changes),
    ...{ playbook: createPlaybookTree(server), lessonDiffs: createLessonDiffs() },
    ...{ work: createWorkTree(server), everywhere, place: Uri.file("/extension") },
  });
  const run = (name: string, ...args: unknown[]) => commands.executeCommand(`daiku.${name}`, ...args);
  const asked = (method: string) => server.asked.filter((one) => one.method === method).map(({ params }) => params);
  return { ...world, changes, calls, secrets, everywhere, run, asked };
}
