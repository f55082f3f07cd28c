// Icons, buttons, links and cards that all components use.

import type { ComponentChildren } from "preact";
import { post } from "./api";
import { t } from "./words";

export function Icon({ name, spin = false }: { name: string; spin?: boolean }) {
  return <span class={`codicon codicon-${name}${spin ? " spin" : ""}`} aria-hidden="true" />;
}

interface IconButtonProps {
  icon: string;
  label: string;
  onClick: (event: MouseEvent) => void;
  disabled?: boolean;
  class?: string;
  expanded?: boolean;
}

/** A button that is only an icon; its label is read out and shown as a tooltip. */
export function IconButton({ icon, label, onClick, disabled = false, class: extra = "", expanded }: IconButtonProps) {
  return (
    <button
      type="button"
      class={`icon ${extra}`}
      title={label}
      aria-label={label}
      aria-expanded={expanded}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}

/** Shows for a moment on a button that its text is copied. */
export function acknowledge(button: Element): void {
  const icon = button.querySelector(".codicon");
  icon?.classList.replace("codicon-copy", "codicon-check");
  setTimeout(() => icon?.classList.replace("codicon-check", "codicon-copy"), 1200);
}

export function CopyButton({ text, label = t("Copy") }: { text: string; label?: string }) {
  const copy = (event: MouseEvent) => {
    post({ type: "copy", text });
    if (event.currentTarget instanceof Element) acknowledge(event.currentTarget);
  };
  return <IconButton icon="copy" label={label} onClick={copy} />;
}

/** A path that opens in the editor: the folder stands back behind the file's name. */
export function PathLink({ path, line }: { path: string; line?: number | undefined }) {
  const cut = path.lastIndexOf("/") + 1;
  const open = (event: MouseEvent) => {
    event.stopPropagation();
    post({ type: "openFile", path, ...(line ? { line } : {}) });
  };
  return (
    <button type="button" class="path" title={path} onClick={open}>
      <span class="name">{path.slice(cut)}</span>
      {cut > 0 && <span class="folder">{path.slice(0, cut - 1)}</span>}
    </button>
  );
}

export function Stats({ added, removed }: { added: number; removed: number }) {
  const spoken = t("{0} lines added, {1} removed", added, removed);
  return (
    <span class="stats" role="img" aria-label={spoken} title={spoken}>
      {added > 0 && <span class="added">+{added}</span>}
      {removed > 0 && <span class="removed">−{removed}</span>}
    </span>
  );
}

export function Card({ kind, label, children }: { kind: string; label: string; children: ComponentChildren }) {
  return (
    <section class={`card ${kind}`} aria-label={label}>
      {children}
    </section>
  );
}
