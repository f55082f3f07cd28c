// The panel: banner, conversation, composer.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isScripted, modelInUse, type ServerState } from "../src/pure/chat/panel";
import { dollars, duration, tokens } from "../src/pure/text/format";
import { proofsIn } from "../src/pure/view/proofs";
import { toolFace } from "../src/pure/view/toolFace";
import { type ApprovalItem, type Item, type View, waiting } from "../src/pure/view/view";
import { post } from "./base/api";
import { Icon, IconButton } from "./base/parts";
import { t } from "./base/words";
import { Composer, type Usage } from "./composer/Composer";
import { History } from "./History";
import { endWords, Trouble } from "./items/Ends";
import { useFolding } from "./items/folding";
import { ItemView, restoredWords } from "./items/Items";
import { attach, type PanelState, type Store } from "./store";
import { Welcome } from "./Welcome";

/** So many items are shown at first, and so many more each time the person scrolls to the top. */
const WINDOW = 80;
/** After this long without a sign of life the panel says what it waits for. */
const SILENT_MS = 5000;
/** Nearer than this to the end the list follows what arrives, in pixels. */
const NEAR = 60;

export function App({ state, store }: { state: PanelState; store: Store }) {
  const { view, situation, working, history, session } = state;
  const [sent, setSent] = useState(0);
  const focus = state.focus;
  useFocusKept();
  const patch = (change: Partial<PanelState>) => store.set({ ...store.state, ...change });
  const said = useMemo(() => saidIn(view.items), [view.items]);
  if (!state.ready) return null;
  const empty = view.items.length === 0 && !working && !state.echo;
  return (
    <main class="app">
      <Banner situation={state.situation} />
      {history.open && <History history={history} onClose={() => patch({ history: { ...history, open: false } })} />}
      <div class="main" hidden={history.open}>
        {empty && isComing(state) ? (
          <p class="coming dim" role="status">
            {t("The chat is being fetched…")}
          </p>
        ) : empty ? (
          <Welcome situation={situation} onExample={(text) => patch({ prefill: { text, n: Date.now() } })} />
        ) : (
          <Conversation
            key={session?.sessionId}
            view={view}
            working={working}
            session={session?.sessionId ?? ""}
            earlier={state.earlier?.count ?? 0}
            sent={sent}
            echo={state.echo}
            focus={focus?.what === "approval" ? focus.n : 0}
          />
        )}
        {state.failure && <Trouble {...state.failure} />}
        <Interrupted state={state} />
        <Composer
          situation={situation}
          working={working}
          attachments={state.attachments}
          candidates={state.candidates}
          prefill={state.prefill}
          focus={focus?.what === "composer" ? focus.n : 0}
          usage={usageOf(view, situation)}
          said={said}
          onAttach={(attachment) => store.set(attach(store.state, [attachment]))}
          onDetach={(gone) => patch({ attachments: state.attachments.filter((a) => a !== gone) })}
          onSent={(echo) => {
            patch(working ? { failure: undefined, echo } : { attachments: [], failure: undefined, echo });
            setSent(sent + 1);
          }}
        />
      </div>
    </main>
  );
}

/** A chat is open of which nothing is here yet: the server that has it starts, or is asked. */
const isComing = ({ session, situation: { server } }: PanelState): boolean =>
  session !== undefined && session.createdAt === "" && server.phase !== "failed";

const saidIn = (items: readonly Item[]): string[] =>
  items.flatMap((item) => (item.kind === "user" && item.depth === 0 ? [item.text] : [])).reverse();

/** What had the focus may be replaced, as a question is by its answer: the focus then goes to the composer. */
function useFocusKept(): void {
  const last = useRef<Element | undefined>(undefined);
  useEffect(() => {
    const focused = (event: FocusEvent) => {
      if (event.target instanceof Element) last.current = event.target;
    };
    document.addEventListener("focusin", focused);
    return () => document.removeEventListener("focusin", focused);
  }, []);
  useLayoutEffect(() => {
    const lost = document.activeElement === document.body && last.current && !last.current.isConnected;
    if (!lost || !document.hasFocus()) return;
    document.querySelector<HTMLElement>(".composer textarea")?.focus({ preventScroll: true });
  });
}

/** How full the context is and what the chat has cost; all numbers in the tooltip. */
function usageOf({ usage, contextTokens }: View, situation: PanelState["situation"]): Usage | undefined {
  if (!usage.promptTokens && !usage.completionTokens) return undefined;
  const id = modelInUse(situation);
  if (isScripted(id)) return undefined;
  const room = situation.models?.models.find((offer) => offer.id === id)?.context ?? 0;
  const context = room
    ? t("context {0} of {1}", tokens(contextTokens), tokens(room))
    : t("context {0}", tokens(contextTokens));
  const all = [t("{0} in", tokens(usage.promptTokens)), t("{0} out", tokens(usage.completionTokens))];
  if (usage.cachedTokens) all.push(t("{0} cached", tokens(usage.cachedTokens)));
  const paid =
    usage.cost === undefined
      ? t("{0} tokens", tokens(usage.promptTokens + usage.completionTokens))
      : dollars(usage.cost);
  return {
    short: `${context} · ${paid}`,
    long: `${t("This chat")}: ${all.join(" · ")}${usage.cost === undefined ? "" : ` · ${dollars(usage.cost)}`}`,
  };
}

function Banner({ situation }: { situation: PanelState["situation"] }) {
  const { server, trusted } = situation;
  const command = (id: "daiku.restartServer" | "daiku.showLog" | "workbench.trust.manage") => () =>
    post({ type: "command", command: id });
  if (server.phase === "failed") {
    return (
      <div class="banner error" role="alert">
        <Icon name="error" />
        <div>
          <p>{server.message || t("The Daiku server does not run.")}</p>
          {server.hint && <p class="dim">{server.hint}</p>}
          <div class="buttons">
            <button type="button" class="secondary" onClick={command("daiku.restartServer")}>
              {t("Try again")}
            </button>
            <button type="button" class="link" onClick={command("daiku.showLog")}>
              {t("Show log")}
            </button>
          </div>
        </div>
      </div>
    );
  }
  if (!trusted) {
    return (
      <div class="banner" role="status">
        <Icon name="shield" />
        <div>
          <p>{t("This workspace is not trusted: Daiku can chat, but runs nothing and takes no settings from it.")}</p>
          <button type="button" class="link" onClick={command("workbench.trust.manage")}>
            {t("Manage trust")}
          </button>
        </div>
      </div>
    );
  }
  return <Starting server={server} />;
}

function Starting({ server }: { server: ServerState }) {
  if (server.phase !== "installing" && server.phase !== "starting") return null;
  const words = server.phase === "installing" ? t("Setting up Daiku (once)…") : t("Starting…");
  return (
    <div class="banner quiet" role="status">
      <Icon name="loading" spin />
      <p>{server.message || words}</p>
    </div>
  );
}

function Interrupted({ state }: { state: PanelState }) {
  const { view, working, session } = state;
  const run = view.run;
  if (working || run?.status !== "open" || !session) return null;
  const paused = session.status === "paused";
  return (
    <div class="banner interrupted" role="status">
      <Icon name={paused ? "debug-pause" : "debug-disconnect"} />
      <p>{paused ? t("This run is paused.") : t("This run was interrupted.")}</p>
      <button type="button" class="primary" onClick={() => post({ type: "resume", run: run.id })}>
        {t("Resume")}
      </button>
    </div>
  );
}

interface ConversationProps {
  view: View;
  working: boolean;
  session: string;
  /** So many chunks of the session were not fetched yet. */
  earlier: number;
  sent: number;
  echo: string | undefined;
  focus: number;
}

function Conversation({ view, working, session, earlier, sent, echo, focus }: ConversationProps) {
  const list = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [away, setAway] = useState(false);
  const [shown, setShown] = useState(WINDOW);
  const height = useRef(0);
  const asked = useRef(0);
  const { items } = view;
  const { visible, isOpen, toggle } = useFolding(items);
  const from = Math.max(0, visible.length - shown);
  const first = useMemo(() => waiting(view)[0]?.key, [items]);

  // The failure with which the newest request ended: it can be made once more.
  const failed = !working && view.run?.status === "failed" && view.run.repeatable ? view.run.id : undefined;
  const end = failed && items.findLast((item) => item.kind === "error");

  const around = {
    ...{ proofs: proofsIn(items), working, isOpen, toggle },
    diffOf: (checkpoint: string) => diffIn(items, checkpoint),
  };

  const toEnd = () => {
    const box = list.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  useLayoutEffect(() => {
    if (follows.current) toEnd();
  });
  useEffect(() => {
    if (!sent) return;
    follows.current = true;
    toEnd();
  }, [sent]);
  useLayoutEffect(() => {
    const box = list.current;
    if (box && height.current) box.scrollTop += box.scrollHeight - height.current;
    height.current = 0;
  }, [shown]);
  const head = items[0]?.key ?? 0;
  const oldest = useRef(head);
  useLayoutEffect(() => {
    const box = list.current;
    if (head < oldest.current && box) {
      height.current = box.scrollHeight;
      setShown(shown + WINDOW);
    }
    oldest.current = head;
  }, [head]);
  const scrolled = () => {
    const box = list.current;
    if (!box) return;
    const rest = box.scrollHeight - box.scrollTop - box.clientHeight;
    follows.current = rest < NEAR;
    setAway(rest > box.clientHeight / 2);
    if (box.scrollTop >= 200 || height.current) return;
    if (from > 0) {
      height.current = box.scrollHeight;
      setShown(shown + WINDOW);
    } else if (earlier > 0 && asked.current !== earlier) {
      asked.current = earlier; // once for what is left now
      post({ type: "earlier" });
    }
  };
  return (
    <div class="conversation">
      <div
        ref={list}
        class="items"
        role="log"
        aria-label={t("Conversation")}
        aria-live="off"
        tabindex={0}
        onScroll={scrolled}
      >
        {from > 0 && <p class="dim earlier">{t("{0} earlier entries", from)}</p>}
        {from === 0 && earlier > 0 && (
          <p class="dim earlier">{t("Earlier parts of this chat come as you scroll up.")}</p>
        )}
        {visible.slice(from).map((item) => (
          <ItemView
            key={item.key}
            item={item}
            undone={view.undone.gone}
            redo={item.kind === "restored" ? view.undone.redo : undefined}
            session={session}
            focus={item.key === first ? focus : 0}
            again={item === end ? failed : undefined}
            {...(item.kind === "plan" || item.kind === "handoff" ? { around } : {})}
          />
        ))}
        {echo && (
          <div class="item item-user">
            <div class="bubble">
              <div class="said">{echo}</div>
            </div>
          </div>
        )}
        {working && <Busy view={view} />}
      </div>
      {away && (
        <IconButton
          icon="arrow-down"
          class="to-end"
          label={t("To the newest")}
          onClick={() => {
            follows.current = true;
            toEnd();
          }}
        />
      )}
      <Announcer items={items} working={working} />
    </div>
  );
}

function diffIn(items: readonly Item[], checkpoint: string): string | undefined {
  const edits = items.flatMap((item) => (item.kind === "tool" ? item.edits : item.kind === "edit" ? [item.edit] : []));
  return edits.find(({ checkpointId }) => checkpointId === checkpoint)?.diff;
}

/** Says that work goes on where nothing else on the screen does. */
function Busy({ view }: { view: View }) {
  const last = view.items.at(-1);
  const [now, setNow] = useState(Date.now());
  const since = useMemo(() => Date.now(), [view.items]);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const ms = Math.max(0, now - since);
  const words = last && moving(last) ? (ms >= SILENT_MS ? waitingFor(last) : "") : t("Working");
  if (!words) return null;
  return (
    <p class="busy">
      <span class="shimmer">{words}</span>
      {ms >= 5000 && <span class="dim">{duration(ms)}</span>}
    </p>
  );
}

/** For what the silence is, where something is under way. */
function waitingFor(item: Item): string {
  if (item.kind === "text" || item.kind === "thinking") return t("Waiting for the model");
  if (item.kind === "tool") return t("Waiting for: {0}", t(toolFace(item.tool, item.args).title));
  return "";
}

function moving(item: Item): boolean {
  if (item.kind === "text" || item.kind === "thinking") return !item.done;
  if (item.kind === "tool") return item.status === "running";
  return item.kind === "approval" || item.kind === "question" ? true : item.kind === "end";
}

/** A command word for word, anything else by what it is about: nobody wants a diff read out unasked. */
function spokenAsk(ask: ApprovalItem["ask"]): string {
  if (ask.kind === "command") return ask.preview.slice(0, 200);
  const face = toolFace(ask.tool, ask.args);
  return `${t(face.title)} ${face.subject}`;
}

/** Tells a screen reader what has happened, in whole sentences rather than letter by letter. */
function Announcer({ items, working }: { items: readonly Item[]; working: boolean }) {
  const said = useRef<string>("");
  const last = items.at(-1);
  let words = said.current;
  if (last?.kind === "text" && last.done) words = last.text.slice(0, 500);
  else if (last?.kind === "approval" && !last.decision)
    words = t("Daiku asks for your approval: {0}", spokenAsk(last.ask));
  else if (last?.kind === "question" && last.answer === undefined) words = last.ask.question;
  else if (last?.kind === "restored") words = restoredWords(last.restored.files.length, last.back);
  else if (last?.kind === "error") words = last.error.message;
  else if (last?.kind === "end" && !working) words = endWords(last.status) || t("Daiku has finished.");
  said.current = words;
  return (
    <div class="hidden-words" role="status" aria-live="polite">
      {words}
    </div>
  );
}
