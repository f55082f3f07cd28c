// What a room of commands hands over: the commands by their id.

/** The argument is what the editor, a menu or a link gives with it. */
export type CommandTable = Record<string, (argument?: unknown) => unknown>;
