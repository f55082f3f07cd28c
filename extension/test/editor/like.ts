// How the fake editor is held to the real one: what it has, it has with the real types.

import type * as vscode from "vscode";

/** A part of `T`: members may be missing; those that are there have their types, and no others are there. */
export type Like<T> = T extends (...args: infer A) => infer R
  ? (...args: A) => Answer<R>
  : T extends object
    ? { [K in keyof T]?: Like<T[K]> | undefined }
    : T;

type Answer<R> = R extends Thenable<infer V> ? Thenable<Like<V> | undefined> : R extends void ? unknown : Like<R>;

/** What an extension is given at its activation, as far as ours uses it. */
export type Context = Pick<
  vscode.ExtensionContext,
  "subscriptions" | "workspaceState" | "globalState" | "secrets" | "extensionUri" | "globalStorageUri" | "logUri"
>;
