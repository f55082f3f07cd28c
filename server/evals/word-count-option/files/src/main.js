import { readFile } from "node:fs/promises";
import { countWords } from "./count.js";
import { table } from "./table.js";

export const HELP = `words FILE...
Counts the words of files, or of standard input.
  --help  this text
`;

/** Runs the program; answers with its exit code. */
export async function main(args, { stdin, stdout, stderr }) {
  if (args.includes("--help")) {
    stdout.write(HELP);
    return 0;
  }
  const counts = new Map();
  const texts = args.length ? args.map((name) => readFile(name, "utf8")) : [readAll(stdin)];
  for (const text of texts) {
    try {
      countWords(await text, counts);
    } catch (error) {
      stderr.write(`words: ${error.message}\n`);
      return 1;
    }
  }
  stdout.write(table(counts));
  return 0;
}

async function readAll(stream) {
  let text = "";
  for await (const piece of stream) text += piece;
  return text;
}
