import { mergeContacts } from "./merge.js";

/** Contacts of lines `name;mail,mail;phone,phone`. */
export function readContacts(text) {
  return text.split("\n").filter(Boolean).map((line) => {
    const [name, mails = "", phones = ""] = line.split(";");
    return { name, mails: mails.split(",").filter(Boolean), phones: phones.split(",").filter(Boolean) };
  });
}

export const importContacts = (text) => mergeContacts(readContacts(text));
