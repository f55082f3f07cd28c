// The approvals of a conversation that still wait for the person.

import type { Chunk } from "../../contract.gen";

export interface Pending {
  runId: string;
  approvalId: string;
  kind: string;
  preview: string;
}

/** The approvals that were asked for and neither answered nor outlived by their run, oldest first. */
export function pendingApprovals(chunks: readonly Chunk[]): Pending[] {
  const open = new Map<string, Pending>();
  for (const chunk of chunks) {
    if (chunk.type === "approval_asked") {
      const { approvalId, kind, preview } = chunk.data;
      open.set(approvalId, { runId: chunk.run, approvalId, kind, preview });
    } else if (chunk.type === "approval_given") open.delete(chunk.data.approvalId);
    else if (chunk.type === "run_finished") for (const [id, one] of open) if (one.runId === chunk.run) open.delete(id);
  }
  return [...open.values()];
}
