// Lessons for tests, and a server that keeps them: it tells of them, and changes them as it is asked.

import type { PlaybookBullet, PlaybookDelta, PlaybookReviewParams, ShownDelta } from "../../src/contract.gen";
import type { Answers } from "./server";

const TIME = "2026-11-23T07:00:00.000Z";

export const bulletOf = (id: string, over: Partial<PlaybookBullet> = {}): PlaybookBullet => ({
  ...{ id, section: "common_mistakes", content: `What ${id} says.`, keywords: [], helpful: 0, harmful: 0 },
  ...{ active: true, origin: "person", createdAt: TIME, updatedAt: TIME },
  ...over,
});

const deltaOf = (id: string, over: Partial<PlaybookDelta> = {}): PlaybookDelta => ({
  ...{ id, type: "add", scope: "repository", section: "common_mistakes", content: `What ${id} proposes.` },
  ...{ keywords: [], bulletId: "", bulletIds: [], status: "proposed", origin: "rule", why: "", evidence: [] },
  ...{ noKeywords: false, again: [], doubts: [], before: [], after: [] },
  ...{ createdAt: TIME, decidedAt: "" },
  ...over,
});

export const shownOf = (id: string, over: Partial<PlaybookDelta> = {}, more: Partial<ShownDelta> = {}): ShownDelta => {
  const delta = deltaOf(id, over);
  return { ...delta, bullets: [], diff: `@@ ${delta.section} @@\n+${delta.content}\n`, places: [], ...more };
};

type Scope = PlaybookDelta["scope"];
interface Kept {
  repository?: readonly PlaybookBullet[];
  user?: readonly PlaybookBullet[];
  resting?: readonly string[];
  deltas?: readonly ShownDelta[];
}

/** The answers of a server whose playbooks hold this; `kept` may be changed, and `tell` says that it was. */
export function playbookAnswers(first: Kept = {}) {
  const kept = { resting: [], deltas: [], user: [], ...first };
  let revision = 1;
  const waiting: (() => void)[] = [];
  const watched = () => ({
    revision: String(revision),
    active: 0,
    waiting: 0,
    repository: first.repository !== undefined,
  });
  const of = (scope: Scope) => kept[scope] ?? [];
  const put = (scope: Scope, bullets: readonly PlaybookBullet[]) => {
    kept[scope] = bullets;
  };
  const tell = () => {
    revision += 1;
    for (const answer of waiting.splice(0)) answer();
  };
  const decide = (id: string, status: PlaybookDelta["status"], content?: string): PlaybookDelta => {
    const shown = kept.deltas.find((one) => one.id === id) ?? shownOf(id);
    const bulletId = shown.bulletId || `new-${id}`;
    const delta = { ...shown, status, bulletId, content: content ?? shown.content };
    kept.deltas = [...kept.deltas.filter((one) => one !== shown), delta];
    const others = of(delta.scope).filter((bullet) => bullet.id !== bulletId);
    if (status === "applied") put(delta.scope, [...others, bulletOf(bulletId, { content: delta.content })]);
    if (status === "undone") put(delta.scope, others);
    return delta;
  };
  const all = () => [...of("repository"), ...of("user")];
  const changed = (id: string, over: Partial<PlaybookBullet>) => {
    const now = (scope: Scope) => of(scope).map((bullet) => (bullet.id === id ? { ...bullet, ...over } : bullet));
    for (const scope of ["repository", "user"] as const) put(scope, now(scope));
    tell();
    return { deltas: [deltaOf(`d-${id}`, { status: "applied", bulletId: id, type: "update" })], redacted: false };
  };
  const answers = {
    "daiku/playbook/watch": (asked: { revision: string }) =>
      asked.revision === String(revision)
        ? new Promise((resolve) => waiting.push(() => resolve(watched())))
        : watched(),
    "daiku/playbook/list": ({ scope }: { scope: Scope }) => ({
      ...{ bullets: of(scope), resting: kept.resting, sections: ["project_conventions", "common_mistakes"] },
    }),
    "daiku/playbook/search": ({ query }: { query: string }) => ({
      hits: all()
        .filter(({ content }) => content.includes(query))
        .map((bullet) => ({ bullet, resting: kept.resting.includes(bullet.id as never) })),
    }),
    "daiku/playbook/deltas": ({ statuses = ["proposed"] }: { statuses?: PlaybookDelta["status"][] }) => ({
      deltas: kept.deltas.filter(({ status }) => statuses.includes(status)),
    }),
    "daiku/playbook/show": ({ id }: { id: string }) => ({
      bullet: all().find((bullet) => bullet.id === id),
      history: kept.deltas.filter(({ bulletId }) => bulletId === id),
      observations: [],
    }),
    "daiku/playbook/review": ({ accept = [], reject = [], undo = [] }: PlaybookReviewParams) => {
      const decided = [
        ...accept.map(({ id, content }) => decide(id, "applied", content ?? undefined)),
        ...reject.map((id) => decide(id, "rejected")),
        ...undo.map((id) => decide(id, "undone")),
      ];
      tell();
      return { decided, refused: [], redacted: false };
    },
    "daiku/playbook/update": ({ id, content, active }: { id: string; content?: string; active?: boolean }) =>
      changed(id, { ...(content ? { content } : {}), ...(active === undefined ? {} : { active }) }),
    "daiku/playbook/remove": ({ id }: { id: string }) => changed(id, { active: false }),
    "daiku/playbook/add": ({ scope, section, content }: { scope: Scope; section: string; content: string }) => {
      const bullet = bulletOf("new-00001", { section, content });
      put(scope, [...of(scope), bullet]);
      tell();
      return { deltas: [deltaOf("d-new", { status: "applied", bulletId: bullet.id })], bullet, redacted: false };
    },
  };
  return { answers: answers as Answers, kept, tell };
}
