import { mailKey, phoneKey } from "./same.js";

const share = (a, b, key) => a.some((x) => b.some((y) => key(x) === key(y)));
const add = (to, from, key) => {
  for (const each of from) if (!to.some((known) => key(known) === key(each))) to.push(each);
};

/**
 * Contacts that share a mail or a phone become one, also by way of a third. The merged contact stands where the
 * first of them stood and has its name; mails and phones come in the order of the contacts, each once, as first spelt.
 */
export function mergeContacts(contacts) {
  let merged = contacts.map((c) => ({ name: c.name, mails: [], phones: [], from: [c] }));
  for (let again = true; again; ) {
    again = false;
    for (let i = 0; i < merged.length && !again; i++) {
      for (let j = i + 1; j < merged.length && !again; j++) {
        const same = merged[i].from.some((a) =>
          merged[j].from.some((b) => share(a.mails, b.mails, mailKey) || share(a.phones, b.phones, phoneKey)),
        );
        if (same) {
          merged[i].from.push(...merged[j].from);
          merged = merged.filter((_, at) => at !== j);
          again = true;
        }
      }
    }
  }
  return merged.map(({ name, from }) => {
    const found = { name, mails: [], phones: [] };
    for (const c of contacts.filter((c) => from.includes(c))) {
      add(found.mails, c.mails, mailKey);
      add(found.phones, c.phones, phoneKey);
    }
    return found;
  });
}
