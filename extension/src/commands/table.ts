// The type of a table of commands by their ids.

/** The argument is what the editor, a menu or a link gives with it. */
export type CommandTable = Record<string, (argument?: unknown) => unknown>;
