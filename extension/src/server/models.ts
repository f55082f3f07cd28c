// The models on offer, and the one that the person chose.

import * as vscode from "vscode";
import type { ModelOffer, ModelsResult } from "../contract.gen";
import { t } from "../l10n";
import { tokens } from "../pure/text/format";
import { errorText, request } from "./rpc";
import type { Server } from "./server";

export interface Models {
  readonly chosen: string;
  readonly known: ModelsResult | undefined;
  readonly onChange: vscode.Event<void>;
  refresh(): Promise<void>;
  /** Asks the person; shows why a provider cannot be used. */
  select(): Promise<void>;
}

const MODEL = "daiku.model";

type Pick = vscode.QuickPickItem & { id?: string; act?: "key" };

/** The models that the server offers, and the choice that is kept for this workspace. */
export function createModels(server: Server, state: vscode.Memento, log: vscode.LogOutputChannel): Models {
  const changed = new vscode.EventEmitter<void>();
  let known: ModelsResult | undefined;
  const chosen = () => state.get<string>(MODEL) ?? "";
  const refresh = async () => {
    try {
      known = await request(await server.client(), "daiku/models", {});
    } catch (error) {
      log.warn(`models: ${errorText(error)}`);
    }
    changed.fire();
  };
  return {
    get chosen() {
      return chosen();
    },
    get known() {
      return known;
    },
    onChange: changed.event,
    refresh,
    select: async () => {
      const picker = vscode.window.createQuickPick<Pick>();
      picker.title = t("Select Model");
      picker.placeholder = t("Enter a model name or provider/name");
      picker.matchOnDescription = true;
      picker.matchOnDetail = true;
      const fill = () => {
        picker.items = [...items(known, chosen()), ...namedByHand(picker.value, known)];
      };
      fill();
      picker.busy = true;
      picker.onDidChangeValue(fill);
      void refresh().then(() => {
        picker.busy = false;
        fill();
      });
      picker.onDidAccept(async () => {
        const picked = picker.selectedItems[0];
        picker.hide();
        if (picked?.act === "key") await vscode.commands.executeCommand("daiku.setApiKey");
        if (picked?.id === undefined) return;
        await state.update(MODEL, picked.id || undefined);
        changed.fire();
      });
      picker.onDidHide(() => picker.dispose());
      picker.show();
    },
  };
}

function items(known: ModelsResult | undefined, chosen: string): Pick[] {
  if (!known) return [];
  const list: Pick[] = [];
  const automatic = t("Default (from settings)");
  list.push({ label: `$(settings-gear) ${automatic}`, description: known.selected ?? t("none available"), id: "" });
  for (const { provider, usable, error } of known.providers) {
    const models = known.models.filter((model) => model.provider === provider);
    list.push({ label: provider, kind: vscode.QuickPickItemKind.Separator });
    list.push(...models.map((model) => item(model, model.id === chosen)));
    if (usable && models.length) continue;
    const why = error ? [error.message, error.hint].filter(Boolean).join(" ") : t("No models found.");
    const key = error?.kind === "auth" || error?.kind === "no_provider";
    list.push({ label: `$(circle-slash) ${provider}`, detail: why, ...(key ? { act: "key" as const } : {}) });
  }
  return list;
}

function item(model: ModelOffer, chosen: boolean): Pick {
  const facts = [
    model.context ? t("{0}-token context window", tokens(model.context)) : "",
    model.tools ? "" : t("no tools"),
    model.images ? t("images") : "",
    model.thinking ? t("thinking") : "",
    model.trait,
  ];
  return {
    id: model.id,
    label: `${chosen ? "$(check) " : ""}${model.name}`,
    description: model.provider,
    ...(facts.some(Boolean) ? { detail: facts.filter(Boolean).join(" · ") } : {}),
  };
}

/** A model that is not listed can be named all the same. */
function namedByHand(value: string, known: ModelsResult | undefined): Pick[] {
  const name = value.trim();
  if (!/^[a-z]+\/\S+$/.test(name) || known?.models.some((model) => model.id === name)) return [];
  return [{ label: name, description: t("use this name"), id: name, alwaysShow: true }];
}
