"""ACE's own code (github.com/ace-agent/ace), step by step; argument of the environment: where its checkout is."""

# Runs in an environment of its own; what it imports is not here.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import os
import sys
import types
import zlib
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
from bridge import Answer, Bridge

WIDTH = 1024


class Embedder:
    """In the place of `all-mpnet-base-v2`, whose weights are not fetched: words, pairs of words and letters, hashed."""

    def __init__(self, _name: str) -> None:
        pass

    def encode(self, texts: list[str], **_options: object) -> np.ndarray:
        found = np.zeros((len(texts), WIDTH), dtype=np.float32)
        for row, text in enumerate(texts):
            words = text.lower().split()
            signs = [text.lower()[at : at + 3] for at in range(len(text) - 2)]
            for piece in (*words, *map(" ".join, pairwise(words)), *signs):
                found[row, zlib.crc32(piece.encode()) % WIDTH] += 1.0
        return found


class Tokens:
    """In the place of tiktoken's table, which would be fetched; ACE only puts the number into its statistics."""

    def encode(self, text: str) -> list[str]:
        return [text[at : at + 4] for at in range(0, len(text), 4)]


def stand_in(name: str, **what: object) -> None:
    module = types.ModuleType(name)
    vars(module).update(what)
    sys.modules[name] = module


class Client:
    """In the place of OpenAI's client."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, messages: list[dict[str, str]], **_options: object) -> SimpleNamespace:
        reply = self._bridge.model(messages[0]["content"])
        choice = SimpleNamespace(message=SimpleNamespace(content=reply))
        return SimpleNamespace(choices=[choice], usage=SimpleNamespace(prompt_tokens=0, completion_tokens=0))


class Judge:
    """What ACE calls a data processor: whether the answer is right."""

    def answer_is_correct(self, answer: str, target: str) -> bool:
        return answer == target


def main() -> None:
    bridge = Bridge()
    stand_in("tiktoken", get_encoding=lambda _name: Tokens())
    stand_in("sentence_transformers", SentenceTransformer=Embedder)
    os.environ["OPENAI_API_KEY"] = "none"  # asked for; nothing is ever sent
    sys.path.insert(0, os.environ["ACE_FOLDER"])
    from ace import ACE
    from playbook_utils import apply_curator_operations

    current: dict[str, Any] = {}

    def begin(asked: Answer) -> Answer:
        made = ACE(
            "openai", "none", "none", "none",
            use_bulletpoint_analyzer=asked["analyzer"],
            bulletpoint_analyzer_threshold=asked["threshold"],
        )  # fmt: skip
        client = Client(bridge)
        made.generator.api_client = made.reflector.api_client = made.curator.api_client = client
        if made.bulletpoint_analyzer is not None:
            made.bulletpoint_analyzer.client = client
        current.update(ace=made, step=0)
        return {}

    def learn(asked: Answer) -> Answer:
        current["step"] += 1
        made = current["ace"]
        config = {
            "json_mode": True,
            "no_ground_truth": True,
            "max_num_rounds": asked["rounds"],
            "playbook_token_budget": asked["budget"],
        }
        made._train_single_sample(
            task_dict={"question": asked["question"], "context": "", "target": "passed"},
            data_processor=Judge(),
            step_id=f"online_train_s_{current['step']}",
            epoch=1,
            step=current["step"],
            usage_log_path=os.devnull,
            log_dir=None,
            config_params=made._extract_config_params(config),
            total_samples=asked["samples"],
        )
        return {"playbook": made.playbook}

    def put_in(asked: Answer) -> Answer:
        made = current["ace"]
        added = [{"type": "ADD", "section": asked["section"], "content": each} for each in asked["texts"]]
        made.playbook, made.next_global_id = apply_curator_operations(
            made.playbook, added, made.next_global_id
        )
        return {"playbook": made.playbook}

    bridge.serve({"begin": begin, "learn": learn, "put_in": put_in})


main()
