// What `vscode` is in fast tests.

export * from "./lending";
export * from "./values";
export { window } from "./window";
export { commands, env, extensions, l10n, languages, lm, version, workspace } from "./workspace";
