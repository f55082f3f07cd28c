// What items need that speak of others: plans and nested runs.

import type { Proofs } from "../plan/Plan";
import type { DiffOf } from "./Report";

export interface Around {
  proofs: Proofs;
  working: boolean;
  diffOf: DiffOf;
  /** The nested runs that are unfolded. */
  isOpen: (child: string) => boolean;
  toggle: (child: string) => void;
}
