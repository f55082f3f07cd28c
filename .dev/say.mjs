// What the tools tell the person at the terminal: short lines, colour only where it is understood.

const colour = process.stderr.isTTY && !process.env.NO_COLOR;
const paint = (code) => (text) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);

export const bold = paint(1);
export const dim = paint(2);
export const red = paint(31);
export const green = paint(32);

/** One line of progress. It goes to stderr, so that stdout holds only results. */
export function say(text) {
  process.stderr.write(`${text}\n`);
}

/** A failure that a person can mend: shown as one line, without a stack. */
export class Trouble extends Error {}

/** Runs a tool's main function; ends the process with its exit code, or 1 after one line of what is wrong. */
export async function main(run) {
  try {
    process.exitCode = (await run()) ?? 0;
  } catch (error) {
    say(red(error instanceof Trouble ? error.message : String(error?.stack ?? error)));
    process.exitCode = 1;
  }
}

export const seconds = (since) => `${((Date.now() - since) / 1000).toFixed(1)} s`;
