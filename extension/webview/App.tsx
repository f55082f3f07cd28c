// The panel: banner, conversation or welcome, composer.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isScripted, modelInUse } from "../src/pure/chat/panel";
import { dollars, tokens } from "../src/pure/text/format";
import type { Item } from "../src/pure/view/items";
import type { View } from "../src/pure/view/view";
import { Banner, Interrupted } from "./Banner";
import { t } from "./base/words";
import { Composer, type Usage } from "./composer/Composer";
import { Conversation } from "./conversation/Conversation";
import { History } from "./History";
import { Trouble } from "./items/Ends";
import { attach, type PanelState, type Store } from "./store";
import { Welcome } from "./Welcome";

type Patch = (change: Partial<PanelState>) => void;

export function App({ state, store }: { state: PanelState; store: Store }) {
  const { view, situation, working, history } = state;
  const [sent, setSent] = useState(0);
  useFocusKept();
  const patch: Patch = (change) => store.set({ ...store.state, ...change });
  const said = useMemo(() => saidIn(view.items), [view.items]);
  if (!state.ready) return null;
  return (
    <main class="app">
      <Banner situation={situation} />
      {history.open && <History history={history} onClose={() => patch({ history: { ...history, open: false } })} />}
      <div class="main" hidden={history.open}>
        <Content state={state} patch={patch} sent={sent} />
        {state.failure && <Trouble {...state.failure} />}
        <Interrupted state={state} />
        <Composer
          situation={situation}
          working={working}
          attachments={state.attachments}
          candidates={state.candidates}
          prefill={state.prefill}
          focus={state.focus?.what === "composer" ? state.focus.n : 0}
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

/** The conversation; where there is none yet, that it is on its way, or what to begin with. */
function Content({ state, patch, sent }: { state: PanelState; patch: Patch; sent: number }) {
  const { view, working, session, echo, focus } = state;
  const empty = view.items.length === 0 && !working && !echo;
  if (empty && isComing(state))
    return (
      <p class="coming dim" role="status">
        {t("Loading chat…")}
      </p>
    );
  if (empty)
    return <Welcome situation={state.situation} onExample={(text) => patch({ prefill: { text, n: Date.now() } })} />;
  return (
    <Conversation
      key={session?.sessionId}
      view={view}
      working={working}
      session={session?.sessionId ?? ""}
      earlier={state.earlier?.count ?? 0}
      sent={sent}
      echo={echo}
      focus={focus?.what === "approval" ? focus.n : 0}
    />
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
