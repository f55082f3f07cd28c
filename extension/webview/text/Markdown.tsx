// Markdown that may still be growing: finished blocks are rendered once and never touched again.

import { memo } from "preact/compat";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { advance, type Blocks, hasDefinitions, NO_BLOCKS } from "../../src/pure/text/blocks";
import { post } from "../base/api";
import { acknowledge } from "../base/parts";
import { render } from "./sanitize";

const Block = memo(({ source, live }: { source: string; live: boolean }) => {
  const html = useMemo(() => render(source, live), [source, live]);
  return <div class="block" dangerouslySetInnerHTML={{ __html: html }} />;
});

export function Markdown({ text, done }: { text: string; done: boolean }) {
  const former = useRef<Blocks>(NO_BLOCKS);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    element?.addEventListener("click", onClick);
    return () => element?.removeEventListener("click", onClick);
  }, []);
  const whole = done && hasDefinitions(text);
  if (!whole) former.current = advance(former.current, text);
  const { done: finished, from } = former.current;
  return (
    <div class="markdown" ref={box}>
      {!whole && finished.map((source, i) => <Block key={i} source={source} live={false} />)}
      <Block key={whole ? "whole" : finished.length} source={whole ? text : text.slice(from)} live={!done} />
    </div>
  );
}

/** Links and buttons inside rendered markdown. */
function onClick(event: MouseEvent): void {
  const target = event.target instanceof Element ? event.target : undefined;
  const button = target?.closest("button[data-act]");
  if (button) {
    const text = button.closest(".code")?.querySelector("pre")?.textContent ?? "";
    const act = button.getAttribute("data-act");
    post(act === "insert" ? { type: "insert", text } : { type: "copy", text });
    if (act === "copy") acknowledge(button);
    return;
  }
  const link = target?.closest("a");
  if (!link) return;
  event.preventDefault();
  const path = link.getAttribute("data-path");
  const line = Number(link.getAttribute("data-line"));
  if (path) post({ type: "openFile", path, ...(line > 0 ? { line } : {}) });
  else post({ type: "openLink", href: link.getAttribute("href") ?? "" });
}
