// Work items for tests, and a server that tells of them as a test says.

import type { WorkItem } from "../../src/contract.gen";
import { type Answers, serverOf } from "./server";

/** An item that is at work, unless `over` says otherwise. */
export const itemOf = (item: string, over: Partial<WorkItem> = {}): WorkItem => ({
  ...{ item, title: "", url: "", state: "processing", sessionId: "", branch: "", requestUrl: "", attempts: 1 },
  ...{ wanted: "", error: "", createdAt: "2026-11-23T07:00:00.000Z", updatedAt: "2026-11-23T07:00:00.000Z" },
  ...over,
});

/** `tell`: the items are these now; whoever watches is answered. */
export function workServer(answers: Answers = {}, first: readonly WorkItem[] = []) {
  let [revision, items] = [1, first];
  let answer: (() => void) | undefined;
  const told = () => ({ revision: String(revision), items });
  const server = serverOf({
    "daiku/work/watch": (params: { revision: string }) =>
      params.revision === String(revision)
        ? new Promise((resolve) => {
            answer = () => resolve(told());
          })
        : told(),
    ...answers,
  });
  const tell = (...now: WorkItem[]) => {
    [revision, items] = [revision + 1, now];
    answer?.();
  };
  return { server, tell };
}
