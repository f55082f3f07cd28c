// A tool call: one line while it is closed; arguments, output and changes when it is open.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Edit, FileStat } from "../../src/contract.gen";
import { showControls, showOutput } from "../../src/pure/text/ansi";
import { duration } from "../../src/pure/text/format";
import type { ToolItem } from "../../src/pure/view/items";
import { toolFace } from "../../src/pure/view/toolFace";
import { post } from "../base/api";
import { CopyButton, Icon, IconButton, PathLink, Stats } from "../base/parts";
import { t } from "../base/words";
import { Diff } from "../text/Diff";
import { highlight } from "../text/sanitize";

const MOST_SHOWN = 20_000;
/** Lines of a failed command that stay in sight. */
const LAST_LINES = 12;

export function Tool({ item, undone }: { item: ToolItem; undone: ReadonlySet<string> }) {
  const [choice, setChoice] = useState<boolean>();
  const face = toolFace(item.tool, item.args);
  const command = item.tool === "shell/run";
  const output = showOutput(item.result || item.output);
  const wrong = item.status === "failed" && command && output !== "";
  const open = choice ?? (item.status === "running" && command && output !== "");
  const note = open ? "" : noteOf(item, output, command);
  const [edit] = item.edits;
  const single = item.edits.length === 1 && edit?.files.length === 1 ? edit : undefined;
  return (
    <div class={`tool ${item.status}${open ? " open" : ""}`} data-call={item.id}>
      <div class="tool-line">
        <button type="button" class="tool-head" aria-expanded={open} onClick={() => setChoice(!open)}>
          <Status item={item} icon={face.icon} />
          <span class="title">{t(face.title)}</span>
          {!edit && (
            <span class="subject" title={face.subject}>
              {face.subject.split("\n")[0]}
            </span>
          )}
        </button>
        {single && <FileLine edit={single} file={single.files[0] as FileStat} first undone={undone} />}
        <Side item={item} open={open} onToggle={() => setChoice(!open)} />
      </div>
      {!single && item.edits.map((one) => <Edits key={one.checkpointId} edit={one} undone={undone} />)}
      {open && single?.diff && (
        <div class="tool-details">
          <Diff diff={single.diff} names={false} />
        </div>
      )}
      {open && !single?.diff && <Details item={item} output={output} command={command} />}
      {!open && choice === undefined && wrong && (
        <div class="tool-details">
          <div class="output">
            <pre tabindex={0}>{lastLines(output)}</pre>
          </div>
        </div>
      )}
      {note && <div class="tool-error">{note}</div>}
    </div>
  );
}

/** At the end of the line: where the text comes from, how it ended, how long it took. */
function Side({ item, open, onToggle }: { item: ToolItem; open: boolean; onToggle: () => void }) {
  return (
    <span class="tool-side">
      {item.untrusted && (
        <span class="badge" title={t("External content. It cannot grant permissions.")}>
          {t("external")}
        </span>
      )}
      {item.status === "failed" && item.exitCode !== undefined && (
        <span class="badge wrong">{t("exit code {0}", item.exitCode)}</span>
      )}
      {item.durationMs >= 1000 && <span class="dim">{duration(item.durationMs)}</span>}
      <button type="button" class="icon" tabIndex={-1} aria-hidden="true" onClick={onToggle}>
        <Icon name={open ? "chevron-up" : "chevron-down"} />
      </button>
    </span>
  );
}

/** The end of a failed command's output: what went wrong stands there. */
function lastLines(output: string): string {
  const lines = output.trimEnd().split("\n");
  return lines.length <= LAST_LINES ? lines.join("\n") : ["…", ...lines.slice(-LAST_LINES)].join("\n");
}

/** What a closed call says of how it ended. What a refused call was answered with is for the model. */
function noteOf({ status, decision }: ToolItem, output: string, command: boolean): string {
  switch (status) {
    case "failed":
      return command ? "" : (output.split("\n")[0] ?? "");
    case "rejected":
      return decision === "reject_always" ? t("You always reject this.") : t("You rejected this.");
    case "refused":
      return t("Blocked by Daiku's rules.");
    case "unasked":
      return t("No one was available to approve this.");
    case "interrupted":
      return t("Interrupted. It may have had side effects.");
    case "cancelled":
      return t("Canceled. It may have had side effects.");
    case "skipped":
      return t("Not run.");
    case "running":
    case "ok":
      return "";
  }
}

const ICONS: Record<Exclude<ToolItem["status"], "running" | "ok">, string> = {
  failed: "error",
  rejected: "close",
  refused: "shield",
  unasked: "bell-slash",
  interrupted: "debug-disconnect",
  cancelled: "debug-stop",
  skipped: "debug-step-over",
};

function Status({ item, icon }: { item: ToolItem; icon: string }) {
  const face = item.status === "running" || item.status === "ok" ? icon : ICONS[item.status];
  const spoken: string = {
    running: t("running"),
    ok: t("done"),
    failed: t("failed"),
    rejected: t("rejected"),
    refused: t("not allowed"),
    unasked: t("not approved"),
    interrupted: t("interrupted"),
    cancelled: t("canceled"),
    skipped: t("not run"),
  }[item.status];
  return (
    <span class="status" role="img" aria-label={spoken} title={spoken}>
      <Icon name={item.status === "running" ? "loading" : face} spin={item.status === "running"} />
    </span>
  );
}

function Details({ item, output, command }: { item: ToolItem; output: string; command: boolean }) {
  const end = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (item.status === "running" && end.current) end.current.scrollTop = end.current.scrollHeight;
  }, [item.status, output]);
  const shown = output.length > MOST_SHOWN ? `${output.slice(0, MOST_SHOWN)}\n…` : output;
  const code = useMemo(() => (isFile(item) ? highlight(shown, languageOf(item.args.path)) : undefined), [item, shown]);
  const text = typeof item.args.command === "string" ? item.args.command : "";
  return (
    <div class="tool-details">
      {command ? (
        <pre class="command">
          <span class="prompt" aria-hidden="true">
            ${" "}
          </span>
          {showOutput(text)}
        </pre>
      ) : (
        !inTitle(item) &&
        item.edits.length === 0 && <pre class="args">{showControls(JSON.stringify(item.args, null, 2))}</pre>
      )}
      {shown && (
        <div class="output">
          {code === undefined ? (
            <pre ref={end} tabindex={0}>
              {shown}
            </pre>
          ) : (
            <pre class="code-text" tabindex={0} dangerouslySetInnerHTML={{ __html: code }} />
          )}
          <CopyButton text={output} />
        </div>
      )}
    </div>
  );
}

const isFile = ({ tool, status }: ToolItem): boolean => tool === "files/read" && status === "ok";

/** What its arguments say stands in the title already. */
const inTitle = ({ tool, args }: ToolItem): boolean => tool === "files/read" || Object.keys(args).length === 0;

const languageOf = (path: unknown): string => (typeof path === "string" ? (/\.(\w+)$/.exec(path)?.[1] ?? "") : "");

/** The files that one edit changed, with its diff, and the way back. */
export function Edits({ edit, undone }: { edit: Edit; undone: ReadonlySet<string> }) {
  const [open, setOpen] = useState(false);
  return (
    <div class="edits">
      {edit.files.map((file, n) => (
        <div class="edit-file" key={file.path}>
          <Icon name={FILE_ICONS[file.kind]} />
          <FileLine edit={edit} file={file} first={n === 0} undone={undone} />
          {n === 0 && edit.diff && (
            <IconButton
              icon={open ? "chevron-up" : "chevron-down"}
              label={open ? t("Hide Changes") : t("Show Changes")}
              expanded={open}
              onClick={() => setOpen(!open)}
            />
          )}
        </div>
      ))}
      {open && <Diff diff={edit.diff} />}
    </div>
  );
}

interface FileLineProps {
  edit: Edit;
  file: FileStat;
  /** The way back is offered once for all files of an edit. */
  first: boolean;
  undone: ReadonlySet<string>;
}

function FileLine({ edit, file, first, undone }: FileLineProps) {
  const gone = undone.has(edit.checkpointId);
  const { path } = file;
  return (
    <span class={`file-line${gone ? " undone" : ""}`}>
      <PathLink path={path} />
      <Stats added={file.added} removed={file.removed} />
      <span class="grow" />
      {gone && first && <span class="badge">{t("undone")}</span>}
      {!gone && edit.diff && file.kind !== "rename" && (
        <IconButton
          icon="diff"
          label={t("Open Diff")}
          onClick={() => post({ type: "openDiff", path, diff: edit.diff })}
        />
      )}
      {!gone && first && edit.checkpointId && (
        <IconButton
          icon="discard"
          label={t("Undo This and All Later Changes")}
          onClick={() => post({ type: "undo", checkpointId: edit.checkpointId })}
        />
      )}
    </span>
  );
}

const FILE_ICONS: Record<FileStat["kind"], string> = {
  create: "diff-added",
  edit: "diff-modified",
  delete: "diff-removed",
  rename: "diff-renamed",
};
