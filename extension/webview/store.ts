// The panel's state, and how messages from the extension change it, once per frame.

import type { Chunk, EarlierChunks, Session } from "../src/contract.gen";
import type { Attachment, Situation, ToPanel } from "../src/pure/chat/panel";
import { EMPTY, foldAll, prepend, type View, withEarlier } from "../src/pure/view/view";
import { revealPlace } from "./base/reveal";
import { setWords } from "./base/words";

export interface PanelState {
  ready: boolean;
  situation: Situation;
  session: Session | undefined;
  view: View;
  /** What of this session has not been fetched. */
  earlier: EarlierChunks | undefined;
  /** A run of this session is under way in this window. */
  working: boolean;
  history: { open: boolean; query: string; sessions: readonly Session[]; current: string | undefined; loaded: boolean };
  candidates: { query: string; list: readonly Attachment[] };
  attachments: readonly Attachment[];
  failure: { kind: string; message: string; hint: string } | undefined;
  /** Said, but not yet heard of again: shown until the run that it starts is seen. */
  echo: string | undefined;
  /** Text to put into the composer; `n` tells two alike apart. */
  prefill: { text: string; n: number } | undefined;
  focus: { what: "composer" | "history" | "approval"; n: number } | undefined;
}

const START: PanelState = {
  ready: false,
  situation: { server: { phase: "off" }, trusted: true, model: "", mode: "act", folder: true },
  session: undefined,
  view: EMPTY,
  earlier: undefined,
  working: false,
  history: { open: false, query: "", sessions: [], current: undefined, loaded: false },
  candidates: { query: "", list: [] },
  attachments: [],
  failure: undefined,
  echo: undefined,
  prefill: undefined,
  focus: undefined,
};

let serial = 0;

/** The state after a message; chunks are folded by `Store`. */
function receive(state: PanelState, message: Exclude<ToPanel, { type: "chunks" }>): PanelState {
  switch (message.type) {
    case "hello":
      setWords(message.words, message.locale);
      return { ...state, ready: true, situation: message.situation };
    case "situation":
      return { ...state, situation: message.situation };
    case "session":
      return showSession(state, message);
    case "earlier": {
      if (message.session !== state.session?.sessionId) return state;
      return { ...state, view: prepend(state.view, message.chunks), earlier: message.earlier };
    }
    case "working":
      return message.session === (state.session?.sessionId ?? "") ? { ...state, working: message.working } : state;
    case "sessions": {
      const { query, sessions, current } = message;
      return { ...state, history: { ...state.history, query, sessions, current, loaded: true } };
    }
    case "candidates":
      return { ...state, candidates: { query: message.query, list: message.candidates } };
    case "attach":
      return attach(state, [message.attachment]);
    case "prefill":
      return { ...attach(state, message.attachments), prefill: { text: message.text, n: ++serial } };
    case "focus": {
      const history = { ...state.history, open: message.what === "history" ? !state.history.open : false };
      return { ...state, history, focus: { what: message.what, n: ++serial } };
    }
    case "place":
      revealPlace(message.seq, message.callId);
      return { ...state, history: { ...state.history, open: false } };
    case "failed": {
      const { kind, message: text, hint, text: unsent } = message;
      const prefill = unsent ? { text: unsent, n: ++serial } : state.prefill;
      return { ...state, working: false, echo: undefined, failure: { kind, message: text, hint }, prefill };
    }
    default:
      return ((unknown: never) => unknown)(message) ?? state;
  }
}

/** Another conversation, or the same one anew. */
function showSession(state: PanelState, message: Extract<ToPanel, { type: "session" }>): PanelState {
  const { session, chunks, working, earlier } = message;
  const same = session?.sessionId !== undefined && session.sessionId === state.session?.sessionId;
  const history = same ? state.history : { ...state.history, open: false };
  const view = withEarlier(foldAll(EMPTY, chunks), earlier);
  return { ...state, session, view, earlier, working, history, echo: undefined, failure: undefined };
}

/** The state with these attachments added; those that are there already are not added again. */
export function attach(state: PanelState, added: readonly Attachment[]): PanelState {
  const id = (a: Attachment) => JSON.stringify(a.item);
  const had = new Set(state.attachments.map(id));
  return { ...state, attachments: [...state.attachments, ...added.filter((a) => !had.has(id(a)))] };
}

/** Calls back at the next frame; soon enough also where frames stand still because the panel is hidden. */
function nextFrame(run: () => void): void {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    clearTimeout(timer);
    run();
  };
  const timer = setTimeout(once, 80);
  requestAnimationFrame(once);
}

/** Holds the state, and draws it anew once per frame. */
export class Store {
  state = START;
  #pending: Chunk[] = [];
  #scheduled = false;
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  receive(message: ToPanel): void {
    if (message.type === "chunks") {
      if (message.session !== this.state.session?.sessionId) return;
      this.#pending.push(...message.chunks);
      this.#schedule();
    } else {
      this.#flush();
      this.set(receive(this.state, message));
    }
  }

  set(state: PanelState): void {
    this.state = state;
    this.#schedule();
  }

  #flush(): void {
    if (this.#pending.length === 0) return;
    const view = foldAll(this.state.view, this.#pending);
    const heard = this.#pending.some(({ type }) => type === "run_started" || type === "message");
    this.#pending = [];
    this.state = { ...this.state, view, echo: heard ? undefined : this.state.echo };
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    nextFrame(() => {
      this.#scheduled = false;
      this.#flush();
      this.#changed();
    });
  }
}
