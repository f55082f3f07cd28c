// The person before the fake editor: what they are shown, and what they do when they are asked.

/** What was shown to the person and done to the editor, in order. */
export const seen = {
  messages: [] as string[],
  status: [] as string[],
  opened: [] as string[],
  copied: [] as string[],
  commands: [] as { name: string; args: unknown[] }[],
  terminals: [] as { text: string; run: boolean }[],
  /** The lists to choose from, as their labels. */
  lists: [] as string[][],
  /** The rows that a tree was made to show. */
  revealed: [] as unknown[],
  context: new Map<string, unknown>(),
};

interface Person {
  /** The label of a button of a message, or nothing. */
  picks: (words: string) => string | undefined;
  /** The number of an entry of a list, or nothing. */
  chooses: (labels: readonly string[]) => number | undefined;
  /** What is written into a box, or nothing. */
  writes: (title: string) => string | undefined;
}

const IDLE: Person = { picks: () => undefined, chooses: () => undefined, writes: () => undefined };

export const person: Person = { ...IDLE };

export function resetPerson(): void {
  const { messages, status, opened, copied, commands, terminals, lists, revealed } = seen;
  for (const list of [messages, status, opened, copied, commands, terminals, lists, revealed]) list.length = 0;
  seen.context.clear();
  Object.assign(person, IDLE);
}
