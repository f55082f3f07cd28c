// A unified diff, one table a file, long ones cut until the person asks for the rest.

import { useMemo, useState } from "preact/hooks";
import { counts, type DiffLine, type FileDiff, type Hunk, parseDiff } from "../../src/pure/diff/diff";
import { showControls } from "../../src/pure/text/ansi";
import { PathLink, Stats } from "../base/parts";
import { t } from "../base/words";

const MOST_LINES = 400;
const SIGN: Record<DiffLine["kind"], string> = { add: "+", del: "−", same: " " };

/** Which hunks of a diff the person wants, counted from 0 through all its files. */
export interface Choosing {
  left: ReadonlySet<number>;
  toggle: (hunk: number) => void;
}

interface Props {
  diff: string;
  exact?: boolean;
  names?: boolean;
  choosing?: Choosing | undefined;
}

/** How many hunks a diff has in all its files. */
export const hunkCount = (diff: string): number => parseDiff(diff).reduce((sum, file) => sum + file.hunks.length, 0);

export function Diff({ diff, exact = false, names = true, choosing }: Props) {
  const files = useMemo(() => parseDiff(diff), [diff]);
  let first = 0;
  const starts = files.map((file) => {
    first += file.hunks.length;
    return first - file.hunks.length;
  });
  if (files.length === 0) return <Plain text={diff} exact={exact} />;
  return (
    <div class="diff">
      {files.map((file, n) => (
        <FileTable
          key={`${file.oldPath} ${file.newPath}`}
          file={file}
          exact={exact}
          named={names || files.length > 1}
          first={starts[n] ?? 0}
          of={first}
          choosing={choosing}
        />
      ))}
    </div>
  );
}

interface TableProps {
  file: FileDiff;
  exact: boolean;
  named: boolean;
  /** The number of its first hunk, and how many there are in all files. */
  first: number;
  of: number;
  choosing: Choosing | undefined;
}

function FileTable({ file, exact, named, first, of, choosing }: TableProps) {
  const [all, setAll] = useState(false);
  const total = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  let left = all ? Number.POSITIVE_INFINITY : MOST_LINES;
  const { added, removed } = counts(file);
  return (
    <div class="diff-file">
      {named && (
        <div class="diff-head">
          <PathLink path={file.newPath ?? file.oldPath ?? ""} />
          <Stats added={added} removed={removed} />
        </div>
      )}
      <div class="diff-lines" tabindex={0}>
        <table>
          <tbody>
            {file.hunks.map((hunk, n) => {
              const lines = hunk.lines.slice(0, left);
              left -= lines.length;
              return <HunkRows key={n} {...{ hunk, lines, exact, of, choosing }} n={first + n} top={n === 0} />;
            })}
          </tbody>
        </table>
      </div>
      {!all && total > MOST_LINES && (
        <button type="button" class="link more" onClick={() => setAll(true)}>
          {t("Show all {0} lines", total)}
        </button>
      )}
    </div>
  );
}

interface HunkProps {
  hunk: Hunk;
  /** Those of its lines that are shown. */
  lines: readonly DiffLine[];
  exact: boolean;
  /** Its number in all files, and how many there are. */
  n: number;
  of: number;
  /** It is the first of its file. */
  top: boolean;
  choosing: Choosing | undefined;
}

function HunkRows({ hunk, lines, exact, n, of, top, choosing }: HunkProps) {
  return (
    <>
      {choosing && <ChoiceRow n={n} of={of} heading={hunk.heading} choosing={choosing} />}
      {!choosing && !top && lines.length > 0 && (
        <tr class="hunk">
          <td colSpan={3}>{hunk.heading || "⋯"}</td>
        </tr>
      )}
      {lines.map((line) => (
        <Line
          key={`${line.kind}${line.old}:${line.new}`}
          line={line}
          exact={exact}
          off={choosing?.left.has(n) === true}
        />
      ))}
    </>
  );
}

/** Makes this change, or leaves it out. */
function ChoiceRow(props: { n: number; of: number; heading: string; choosing: Choosing }) {
  const { n, of, heading, choosing } = props;
  const label = t("Change {0} of {1}", n + 1, of);
  return (
    <tr class="hunk choice">
      <td colSpan={3}>
        <label>
          <input type="checkbox" checked={!choosing.left.has(n)} onChange={() => choosing.toggle(n)} />
          <span>{label}</span>
          {heading && <span class="dim">{heading}</span>}
          {choosing.left.has(n) && <span class="badge">{t("excluded")}</span>}
        </label>
      </td>
    </tr>
  );
}

function Line({ line, exact, off }: { line: DiffLine; exact: boolean; off: boolean }) {
  return (
    <tr class={off ? `${line.kind} off` : line.kind}>
      <td class="number">{line.new ?? line.old}</td>
      <td class="sign">{SIGN[line.kind]}</td>
      <td class="text">{exact ? showControls(line.text) : line.text}</td>
    </tr>
  );
}

export function Plain({ text, exact }: { text: string; exact: boolean }) {
  return (
    <pre class="plain" tabindex={0}>
      {exact ? showControls(text) : text}
    </pre>
  );
}
