import { Locks } from "./locks.js";

/** Counters by name. */
export class Counters {
  #store;
  #locks = new Locks();

  constructor(store) {
    this.#store = store;
  }

  /** Adds to a counter; answers with its new value. */
  add(name, by = 1) {
    return this.#locks.run(name, async () => {
      const value = ((await this.#store.read(name)) ?? 0) + by;
      await this.#store.write(name, value);
      return value;
    });
  }

  async get(name) {
    return (await this.#store.read(name)) ?? 0;
  }
}
