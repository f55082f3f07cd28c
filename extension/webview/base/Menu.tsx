// A small menu that opens above its button: arrows, Home, End, Enter, Escape; closes when the focus leaves.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./parts";

interface Option {
  id: string;
  icon: string;
  name: string;
  detail: string;
}

interface Props {
  label: string;
  options: readonly Option[];
  value: string;
  onChoose: (id: string) => void;
}

export function Menu({ label, options, value, onChoose }: Props) {
  const [open, setOpen] = useState(false);
  const list = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const current = options.find((option) => option.id === value) ?? options[0];
  useEffect(() => {
    if (open) list.current?.querySelector<HTMLElement>('[aria-checked="true"]')?.focus();
  }, [open]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const closeOutside = (event: FocusEvent) => {
    if (!(event.relatedTarget instanceof Node) || !list.current?.parentElement?.contains(event.relatedTarget))
      setOpen(false);
  };
  const title = `${label}: ${current?.name}`;
  return (
    <div class="menu" onFocusOut={closeOutside}>
      <button
        ref={button}
        type="button"
        class="pick"
        title={title}
        aria-label={title}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name={current?.icon ?? "circle"} />
        <span>{current?.name}</span>
        <Icon name="chevron-down" />
      </button>
      {open && <Options {...{ label, options, value, list, close }} onChoose={(id) => [onChoose(id), close()]} />}
    </div>
  );
}

function Options(props: Props & { list: RefObject<HTMLDivElement | null>; close: () => void }) {
  const { label, options, value, list, close, onChoose } = props;
  const onKeyDown = (event: KeyboardEvent) => {
    const items = [...(list.current?.querySelectorAll<HTMLElement>('[role="menuitemradio"]') ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined) items[to % items.length]?.focus();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div ref={list} class="popup" role="menu" aria-label={label} onKeyDown={onKeyDown}>
      {options.map((option) => (
        <button
          key={option.id}
          type="button"
          class="option"
          role="menuitemradio"
          aria-checked={option.id === value}
          onClick={() => onChoose(option.id)}
        >
          <Icon name={option.icon} />
          <span class="two-lines">
            <span class="name">{option.name}</span>
            <span class="folder">{option.detail}</span>
          </span>
          {option.id === value && <Icon name="check" />}
        </button>
      ))}
    </div>
  );
}
