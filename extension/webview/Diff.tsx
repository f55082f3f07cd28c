// A unified diff, one table a file, long ones cut until the person asks for the rest.

import { useMemo, useState } from "preact/hooks";
import { revealed } from "../src/pure/ansi";
import { counts, type DiffLine, type FileDiff, parseDiff } from "../src/pure/diff";
import { PathLink, Stats } from "./parts";
import { t } from "./words";

const MOST_LINES = 400;
const SIGN: Record<DiffLine["kind"], string> = { add: "+", del: "−", same: " " };

export function Diff({ diff, exact = false, names = true }: { diff: string; exact?: boolean; names?: boolean }) {
  const files = useMemo(() => parseDiff(diff), [diff]);
  if (files.length === 0) return <Plain text={diff} exact={exact} />;
  return (
    <div class="diff">
      {files.map((file) => (
        <FileTable
          key={`${file.oldPath} ${file.newPath}`}
          file={file}
          exact={exact}
          named={names || files.length > 1}
        />
      ))}
    </div>
  );
}

function FileTable({ file, exact, named }: { file: FileDiff; exact: boolean; named: boolean }) {
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
              return (
                <>
                  {n > 0 && lines.length > 0 && (
                    <tr class="hunk">
                      <td colSpan={3}>{hunk.heading || "⋯"}</td>
                    </tr>
                  )}
                  {lines.map((line) => (
                    <Line key={`${line.kind}${line.old}:${line.new}`} line={line} exact={exact} />
                  ))}
                </>
              );
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

function Line({ line, exact }: { line: DiffLine; exact: boolean }) {
  return (
    <tr class={line.kind}>
      <td class="number">{line.new ?? line.old}</td>
      <td class="sign">{SIGN[line.kind]}</td>
      <td class="text">{exact ? revealed(line.text) : line.text}</td>
    </tr>
  );
}

export function Plain({ text, exact }: { text: string; exact: boolean }) {
  return (
    <pre class="plain" tabindex={0}>
      {exact ? revealed(text) : text}
    </pre>
  );
}
