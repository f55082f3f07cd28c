// Which part of a long conversation is drawn, and where it stands: follows the end, draws more towards the beginning.

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { post } from "../base/api";

/** So many items are shown at first, and so many more each time the person scrolls to the top. */
const WINDOW = 80;
/** Nearer than this to the end the list follows what arrives, in pixels. */
const NEAR = 60;
/** Nearer than this to the beginning older items are drawn or fetched, in pixels. */
const TOP = 200;

interface Scrolling {
  list: RefObject<HTMLDivElement | null>;
  /** The first item that is drawn. */
  from: number;
  /** The end is out of sight. */
  away: boolean;
  onScroll: () => void;
  toEnd: () => void;
}

interface Needs {
  /** How many items there are, and the key of the oldest. */
  total: number;
  head: number;
  /** So many chunks of the session were not fetched yet. */
  earlier: number;
  /** How many messages the person has sent: each leads to the end. */
  sent: number;
}

/** Scrolls with what arrives, and draws or fetches older items as the person scrolls up. */
export function useScrolling({ total, head, earlier, sent }: Needs): Scrolling {
  const list = useRef<HTMLDivElement>(null);
  const [away, setAway] = useState(false);
  const { follows, toEnd } = useFollowing(list, sent);
  const { from, growing, grow } = useGrowing(list, total, head);
  const asked = useRef(0);
  const onScroll = () => {
    const box = list.current;
    if (!box) return;
    const rest = box.scrollHeight - box.scrollTop - box.clientHeight;
    follows.current = rest < NEAR;
    setAway(rest > box.clientHeight / 2);
    if (box.scrollTop >= TOP || growing()) return;
    if (from > 0) grow();
    else if (earlier > 0 && asked.current !== earlier) {
      asked.current = earlier; // once for what is left now
      post({ type: "earlier" });
    }
  };
  return { list, from, away, onScroll, toEnd };
}

/** Keeps the end in sight until the person scrolls away from it. */
function useFollowing(list: RefObject<HTMLDivElement | null>, sent: number) {
  const follows = useRef(true);
  const scroll = () => {
    const box = list.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  const toEnd = () => {
    follows.current = true;
    scroll();
  };
  useLayoutEffect(() => {
    if (follows.current) scroll();
  });
  useEffect(() => {
    if (sent) toEnd();
  }, [sent]);
  return { follows, toEnd };
}

/** Draws more items at the beginning without moving those in sight. */
function useGrowing(list: RefObject<HTMLDivElement | null>, total: number, head: number) {
  const [shown, setShown] = useState(WINDOW);
  const height = useRef(0);
  const oldest = useRef(head);
  const grow = () => {
    height.current = list.current?.scrollHeight ?? 0;
    setShown(shown + WINDOW);
  };
  useLayoutEffect(() => {
    const box = list.current;
    if (box && height.current) box.scrollTop += box.scrollHeight - height.current;
    height.current = 0;
  }, [shown]);
  useLayoutEffect(() => {
    if (head < oldest.current && list.current) grow();
    oldest.current = head;
  }, [head]);
  return { from: Math.max(0, total - shown), growing: () => height.current > 0, grow };
}
