// Data that plans and nested runs need from the rest of the conversation.

import type { Proofs } from "../plan/Plan";
import type { DiffOf } from "./Report";

export interface Surroundings {
  proofs: Proofs;
  working: boolean;
  diffOf: DiffOf;
  /** The nested runs that are unfolded. */
  isOpen: (child: string) => boolean;
  toggle: (child: string) => void;
}
