// The lifecycle of one server: started once however many ask, restarted, started again after a crash, ended.

export interface RunningServer<C> {
  client: C;
  running(): boolean;
  stop(): Promise<void>;
}

interface LifecycleOptions<C, A extends RunningServer<C>> {
  /** Starts a server. `crashed` is called when it ends by itself; `signal` ends an attempt that nobody waits for any more. */
  launch(crashed: () => void, signal: AbortSignal): Promise<A>;
  /** Something has begun, or has come about. */
  tell(event: LifecycleEvent): void;
  /** Milliseconds. */
  now?: () => number;
}

export type LifecycleEvent =
  | { kind: "restart"; why: string }
  | { kind: "ready" }
  /** It ended by itself, and starts again after a pause. */
  | { kind: "crashed"; pause: number }
  /** It ended by itself too often; a person has to ask for it. */
  | { kind: "given-up" }
  | { kind: "failed"; error: unknown };

/** Pauses before a crashed server is started again; after the last one a person has to ask for it. */
const PAUSES_MS = [0, 500, 2000, 5000, 10_000];
/** A server that lived so long starts the count of crashes anew. */
const HEALTHY_MS = 60_000;

/** Keeps one server running: shares starts, queues restarts, retries crashes with growing pauses. */
export class Lifecycle<C, A extends RunningServer<C>> {
  readonly #options: Required<LifecycleOptions<C, A>>;
  #alive: A | undefined;
  #starting: Promise<C> | undefined;
  #attempt = new AbortController();
  #restarting: Promise<C> | undefined;
  #queued: string | undefined;
  #pausing: ReturnType<typeof setTimeout> | undefined;
  #crashes = 0;
  #over = false;

  constructor(options: LifecycleOptions<C, A>) {
    this.#options = { now: Date.now, ...options };
  }

  get alive(): A | undefined {
    return this.#alive?.running() ? this.#alive : undefined;
  }

  /**
   * The client of the server that runs; starts one where none does. Who asks while one is being started or
   * restarted gets what comes of that: to try again what has just failed would only fail once more.
   */
  async client(): Promise<C> {
    if (this.#restarting) return this.#restarting;
    try {
      return await this.#start();
    } catch (error) {
      // Given up for a restart: what comes of that is the answer.
      if (this.#restarting) return this.#restarting;
      throw error;
    }
  }

  /** Calls during a restart lead to one more, not to many; all of them are answered after the last. */
  async restart(why: string): Promise<void> {
    if (this.#over) return;
    if (this.#restarting) this.#queued = why;
    this.#restarting ??= this.#restart(why).finally(() => {
      this.#restarting = undefined;
    });
    await this.#restarting;
  }

  async stop(): Promise<void> {
    this.#over = true;
    await this.#end();
  }

  #start(): Promise<C> {
    clearTimeout(this.#pausing);
    if (this.#over) return Promise.reject(new Error("the server was stopped"));
    if (this.#alive?.running()) return Promise.resolve(this.#alive.client);
    if (!this.#starting) this.#attempt = new AbortController();
    this.#starting ??= this.#begin(this.#attempt.signal).finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #begin(signal: AbortSignal): Promise<C> {
    const { launch, tell, now } = this.#options;
    let made: A | undefined;
    let since = 0;
    const crashed = () => {
      // One that ends before it was ready fails below; one that was replaced concerns nobody.
      if (!this.#over && made && this.#alive === made) this.#crash(now() - since);
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
    this.#alive = made;
    since = now();
    tell({ kind: "ready" });
    return made.client;
  }

  /** Starts it again after a pause, unless it has crashed too often. */
  #crash(age: number): void {
    const { tell } = this.#options;
    this.#alive = undefined;
    if (age > HEALTHY_MS) this.#crashes = 0;
    const pause = PAUSES_MS[this.#crashes++];
    if (pause === undefined) {
      tell({ kind: "given-up" });
      return;
    }
    tell({ kind: "crashed", pause });
    this.#pausing = setTimeout(() => void this.#start().catch(() => undefined), pause);
  }

  async #end(): Promise<void> {
    clearTimeout(this.#pausing);
    this.#attempt.abort();
    await this.#starting?.catch(() => undefined);
    const former = this.#alive;
    this.#alive = undefined;
    await former?.stop();
  }

  async #restart(why: string): Promise<C> {
    for (let reason = why; ; reason = this.#queued) {
      this.#queued = undefined;
      this.#options.tell({ kind: "restart", why: reason });
      this.#crashes = 0;
      await this.#end();
      const result = await this.#start().then(
        (client) => ({ client }),
        (error: unknown) => ({ error }),
      );
      if (this.#queued !== undefined && !this.#over) continue;
      if ("error" in result) throw result.error;
      return result.client;
    }
  }
}
