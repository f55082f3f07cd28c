// The life of a server: started once however many ask, restarted, started again after a crash, ended.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Lifecycle, type LifecycleEvent, type RunningServer } from "../../src/pure/server/lifecycle";

interface Fake extends RunningServer<string> {
  crash(): void;
}

/** A world in which each start is answered by the test: with a server, with a failure, or not at all. */
function world() {
  const told: LifecycleEvent[] = [];
  const asked: { arrive(): Fake; fail(why: string): void; signal: AbortSignal }[] = [];
  const stopped: string[] = [];
  const life = new Lifecycle<string, Fake>({
    tell: (event) => told.push(event),
    launch: (crashed, signal) =>
      new Promise((resolve, reject) => {
        const client = `server ${asked.length + 1}`;
        let running = true;
        const stop = async () => {
          running = false;
          stopped.push(client);
        };
        const crash = () => {
          running = false;
          crashed();
        };
        const made = { client, running: () => running, stop, crash };
        const arrive = () => {
          resolve(made);
          return made;
        };
        signal.addEventListener("abort", () => reject(new Error("killed")));
        asked.push({ arrive, fail: (why) => reject(new Error(why)), signal });
      }),
  });
  const kinds = () => told.map((event) => event.kind);
  const newest = async () => {
    await vi.advanceTimersByTimeAsync(0);
    const last = asked.at(-1);
    if (!last) throw new Error("no start was asked for");
    return last;
  };
  return { life, kinds, newest, asked, stopped };
}

describe("the life of a server", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("starts once, however many ask", async () => {
    const { life, newest, asked } = world();
    const clients = Promise.all([life.client(), life.client(), life.client()]);
    (await newest()).arrive();
    expect(await clients).toEqual(["server 1", "server 1", "server 1"]);
    expect(asked.length).toBe(1);
  });

  it("fails once for all who waited for a restart", async () => {
    const { life, kinds, newest, asked } = world();
    const first = life.client();
    (await newest()).arrive();
    await first;
    const restart = life.restart("settings changed").catch(String);
    const waiting = [life.client().catch(String), life.client().catch(String)];
    (await newest()).fail("no luck");
    expect(await Promise.all([restart, ...waiting])).toEqual(Array(3).fill("Error: no luck"));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked.length).toBe(2);
    expect(kinds()).toEqual(["ready", "restart", "failed"]);
  });

  it("is started again by who asks later", async () => {
    const { life, newest } = world();
    const first = life.client().catch(String);
    (await newest()).fail("no luck");
    expect(await first).toBe("Error: no luck");
    const second = life.client();
    (await newest()).arrive();
    expect(await second).toBe("server 2");
  });

  it("restarts once more when it is asked during a restart, and hands out only the last", async () => {
    const { life, newest, asked, stopped } = world();
    const first = life.client();
    (await newest()).arrive();
    await first;
    const restarts = Array.from({ length: 6 }, () => life.restart("test"));
    const client = life.client();
    (await newest()).arrive();
    (await newest()).arrive();
    await Promise.all(restarts);
    expect(await client).toBe("server 3");
    expect(asked.length).toBe(3);
    expect(stopped).toEqual(["server 1", "server 2"]);
  });

  it("gives up a start that hangs once settings change, and tells nobody of a failure", async () => {
    const { life, kinds, newest } = world();
    const client = life.client();
    const hanging = await newest();
    const restart = life.restart("settings changed");
    const next = await newest();
    expect(hanging.signal.aborted).toBe(true);
    next.arrive();
    await restart;
    expect(await client).toBe("server 2");
    expect(kinds()).toEqual(["restart", "ready"]);
  });

  it("takes no crash of a former server for one of the present", async () => {
    const { life, kinds, newest, asked } = world();
    const first = life.client();
    const former = (await newest()).arrive();
    await first;
    const restart = life.restart("test");
    (await newest()).arrive();
    await restart;
    former.crash();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(life.alive?.client).toBe("server 2");
    expect(asked.length).toBe(2);
    expect(kinds()).not.toContain("crashed");
  });

  it("starts a crashed one again, later each time, and gives up in the end", async () => {
    const { life, kinds, newest, asked } = world();
    const first = life.client();
    let server = (await newest()).arrive();
    await first;
    for (const pause of [0, 500, 2000, 5000, 10_000]) {
      const before = asked.length;
      server.crash();
      if (pause) await vi.advanceTimersByTimeAsync(pause - 1);
      if (pause) expect(asked.length).toBe(before);
      await vi.advanceTimersByTimeAsync(1);
      expect(asked.length).toBe(before + 1);
      server = (await newest()).arrive();
      await newest();
    }
    server.crash();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(kinds().at(-1)).toBe("given-up");
  });

  it("is not started a second time by a pause that a restart has overtaken", async () => {
    const { life, kinds, newest, asked } = world();
    const first = life.client();
    const server = (await newest()).arrive();
    await first;
    server.crash();
    (await newest()).arrive().crash();
    await newest();
    const restart = life.restart("settings changed").catch(String);
    const before = asked.length;
    (await newest()).fail("no luck");
    await restart;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked.length - before).toBeLessThanOrEqual(1);
    expect(kinds().filter((kind) => kind === "failed").length).toBe(1);
  });

  it("stays over once it was stopped", async () => {
    const { life, newest, stopped } = world();
    const first = life.client();
    (await newest()).arrive();
    await first;
    await life.stop();
    expect(stopped).toEqual(["server 1"]);
    await expect(life.client()).rejects.toThrow();
    await life.restart("settings changed");
    expect(life.alive).toBeUndefined();
  });
});
