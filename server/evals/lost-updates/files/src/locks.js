/** One at a time for each name: `run` waits until those before it under the same name have ended. */
export class Locks {
  #last = new Map();

  async run(name, work) {
    const before = this.#last.get(name);
    if (before) await before;
    const now = work();
    this.#last.set(name, now);
    return now;
  }
}
