// The life of one server: started once however many ask, restarted, started again after a crash, ended.

export interface Alive<C> {
  client: C;
  running(): boolean;
  stop(): Promise<void>;
}

export interface LifeOptions<C, A extends Alive<C>> {
  /** Starts a server. `crashed` is called when it ends by itself; `signal` ends an attempt that nobody waits for any more. */
  launch(crashed: () => void, signal: AbortSignal): Promise<A>;
  /** Something has begun, or has come about. */
  tell(event: LifeEvent): void;
  /** Milliseconds. */
  now?: () => number;
}

export type LifeEvent =
  | { kind: "restart"; why: string }
  | { kind: "ready" }
  /** It ended by itself, and starts again after a pause. */
  | { kind: "crashed"; pause: number }
  /** It ended by itself too often; a person has to ask for it. */
  | { kind: "given-up" }
  | { kind: "failed"; error: unknown };

export interface Life<C, A extends Alive<C>> {
  /**
   * The client of the server that runs; starts one where none does. Who asks while one is being started or
   * restarted gets what comes of that: to try again what has just failed would only fail once more.
   */
  client(): Promise<C>;
  readonly alive: A | undefined;
  /** Calls during a restart lead to one more, not to many; all of them are answered after the last. */
  restart(why: string): Promise<void>;
  stop(): Promise<void>;
}

/** Pauses before a crashed server is started again; after the last one a person has to ask for it. */
const PAUSES_MS = [0, 500, 2000, 5000, 10_000];
/** A server that lived so long starts the count of crashes anew. */
const HEALTHY_MS = 60_000;

export function createLife<C, A extends Alive<C>>({ launch, tell, now = Date.now }: LifeOptions<C, A>): Life<C, A> {
  let alive: A | undefined;
  let starting: Promise<C> | undefined;
  let attempt = new AbortController();
  let restarting: Promise<C> | undefined;
  let queued: string | undefined;
  let pausing: ReturnType<typeof setTimeout> | undefined;
  let crashes = 0;
  let over = false;

  const begin = async (signal: AbortSignal): Promise<C> => {
    let made: A | undefined;
    let born = 0;
    const crashed = () => {
      // One that ends before it was ready fails below; one that was replaced concerns nobody.
      if (over || !made || alive !== made) return;
      alive = undefined;
      if (now() - born > HEALTHY_MS) crashes = 0;
      const pause = PAUSES_MS[crashes++];
      if (pause === undefined) return tell({ kind: "given-up" });
      tell({ kind: "crashed", pause });
      pausing = setTimeout(() => void start().catch(() => undefined), pause);
    };
    try {
      made = await launch(crashed, signal);
    } catch (error) {
      if (!signal.aborted) tell({ kind: "failed", error });
      throw error;
    }
    if (signal.aborted) {
      await made.stop();
      throw new Error("the start was given up");
    }
    alive = made;
    born = now();
    tell({ kind: "ready" });
    return made.client;
  };

  const start = (): Promise<C> => {
    clearTimeout(pausing);
    if (over) return Promise.reject(new Error("the server was stopped"));
    if (alive?.running()) return Promise.resolve(alive.client);
    attempt = starting ? attempt : new AbortController();
    starting ??= begin(attempt.signal).finally(() => {
      starting = undefined;
    });
    return starting;
  };

  const end = async () => {
    clearTimeout(pausing);
    attempt.abort();
    await starting?.catch(() => undefined);
    const former = alive;
    alive = undefined;
    await former?.stop();
  };

  const again = async (why: string): Promise<C> => {
    for (let reason = why; ; reason = queued) {
      queued = undefined;
      tell({ kind: "restart", why: reason });
      crashes = 0;
      await end();
      const result = await start().then(
        (client) => ({ client }),
        (error: unknown) => ({ error }),
      );
      if (queued !== undefined && !over) continue;
      if ("error" in result) throw result.error;
      return result.client;
    }
  };

  return {
    client: async () => {
      if (restarting) return restarting;
      try {
        return await start();
      } catch (error) {
        // Given up for a restart: what comes of that is the answer.
        if (restarting) return restarting;
        throw error;
      }
    },
    get alive() {
      return alive?.running() ? alive : undefined;
    },
    restart: async (why) => {
      if (over) return;
      if (restarting) queued = why;
      restarting ??= again(why).finally(() => {
        restarting = undefined;
      });
      await restarting;
    },
    stop: async () => {
      over = true;
      await end();
    },
  };
}
