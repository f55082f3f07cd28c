// Events that are shown as they came, each in a look of its own.

import type { ComponentChild } from "preact";
import type { Chunk, ChunkType } from "../../src/contract.gen";
import type { ShownAsItCame } from "../../src/pure/view/folds";
import { Compacted, Pruned } from "./Answers";
import { ReviewLine } from "./Decisions";

type Looks<T extends ChunkType> = { [K in T]: (data: Extract<Chunk, { type: K }>["data"]) => ComponentChild };

const LOOKS: Looks<ShownAsItCame> = {
  compacted: (data) => <Compacted {...data} />,
  pruned: (data) => <Pruned {...data} />,
  review: (data) => <ReviewLine review={data} />,
};

export const Look = ({ event }: { event: Chunk }) => (LOOKS as Looks<ChunkType>)[event.type](event.data as never);
