/** A store that answers after a moment, as a database does. */
export class Store {
  #values = new Map();
  #delay;
  constructor(delay = 2) {
    this.#delay = delay;
  }
  async read(key) {
    await this.#moment();
    return this.#values.get(key);
  }
  async write(key, value) {
    await this.#moment();
    this.#values.set(key, value);
  }
  #moment() {
    return new Promise((resolve) => setTimeout(resolve, this.#delay));
  }
}
