// A small menu that opens above its button: arrows, Home, End, Enter, Escape; closes when the focus leaves.

import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./parts";

export interface Option {
  id: string;
  icon: string;
  name: string;
  detail: string;
}

export function Menu(props: {
  label: string;
  options: readonly Option[];
  value: string;
  onChoose: (id: string) => void;
}) {
  const { label, options, value, onChoose } = props;
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
  const choose = (id: string) => {
    onChoose(id);
    close();
  };
  const keyed = (event: KeyboardEvent) => {
    const items = [...(list.current?.querySelectorAll<HTMLElement>('[role="menuitemradio"]') ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined) items[to % items.length]?.focus();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const left = (event: FocusEvent) => {
    if (!(event.relatedTarget instanceof Node) || !list.current?.parentElement?.contains(event.relatedTarget))
      setOpen(false);
  };
  return (
    <div class="menu" onFocusOut={left}>
      <button
        ref={button}
        type="button"
        class="pick"
        title={`${label}: ${current?.name}`}
        aria-label={`${label}: ${current?.name}`}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name={current?.icon ?? "circle"} />
        <span>{current?.name}</span>
        <Icon name="chevron-down" />
      </button>
      {open && (
        <div ref={list} class="popup" role="menu" aria-label={label} onKeyDown={keyed}>
          {options.map((option) => (
            <button
              key={option.id}
              type="button"
              class="option"
              role="menuitemradio"
              aria-checked={option.id === value}
              onClick={() => choose(option.id)}
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
      )}
    </div>
  );
}
