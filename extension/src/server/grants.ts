// Lists what was answered with "always" in this workspace, and takes answers back.

import * as vscode from "vscode";
import { t } from "../l10n";
import { request } from "./rpc";
import type { Server } from "./server";

/** Shows the answers that are kept, and revokes those that the person picks. */
export async function showGrants(server: Pick<Server, "client">): Promise<void> {
  const client = await server.client();
  const { grants, workspace } = await request(client, "daiku/grants/list", {});
  if (!grants.length) {
    void vscode.window.showInformationMessage(t("This workspace has no saved permissions."));
    return;
  }
  const picked = await vscode.window.showQuickPick(
    grants.map(({ key, answer, what }) => ({
      label: `$(${answer === "allow" ? "check" : "circle-slash"}) ${what}`,
      description: answer === "allow" ? t("always allowed") : t("always rejected"),
      key,
    })),
    {
      title: t("Saved permissions for {0}", workspace),
      placeHolder: t("Select entries to remove. Daiku will ask again."),
      canPickMany: true,
    },
  );
  for (const { key } of picked ?? []) await request(client, "daiku/grants/revoke", { key });
}
