"""Typed answers: the type's JSON Schema as a tool that the model calls, or as a form in its reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import isbuiltin, isfunction
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, JsonValue, PydanticUserError, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError

from daiku.dataclass import dataclass
from daiku.domain.messages import AssistantMessage, Message
from daiku.domain.tools import ToolSpec
from daiku.models.rules.replies.parse import Unreadable, read_json
from daiku.run.rules.calls.arguments import parse_arguments, schema_of
from daiku.run.rules.calls.toolnames import wire_name
from daiku.team.form_tool import with_tool_call
from daiku.texts.text import Text

if TYPE_CHECKING:
    from daiku.team.role import Role

GIVE = "result/give"
"""Name of the tool by which a model gives a typed answer."""


@dataclass(frozen=True, slots=True)
class TypedOutput:
    """Type of an agent's answers. `model` validates it; if `wrapped`, the value is its field `result`."""

    model: type[BaseModel]
    wrapped: bool

    def parse_value(self, text: str) -> Any:
        """Return the value in the last text of a run. Raises ValueError if it holds none."""
        answer = self._parse(json.loads(text))
        return getattr(answer, "result") if self.wrapped else answer  # noqa: B009  # a field of the created model

    def _parse(self, value: JsonValue) -> BaseModel:
        if self.wrapped and not (isinstance(value, dict) and value.keys() == {"result"}):
            value = {"result": value}
        return (
            parse_arguments(self.model, value)
            if isinstance(value, dict)
            else self.model.model_validate(value)
        )

    @property
    def spec(self) -> ToolSpec:
        """Tool by which a model gives its answer."""
        return ToolSpec(
            name=GIVE,
            description="Give your final answer. Call this once, when you are done.",
            parameters=schema_of(self.model),
            effect="none",
        )

    def describe_form(self, by_tools: bool) -> str:
        """Return the part of the system prompt on the form of the answer."""
        if by_tools:
            return f"End your work by calling `{wire_name(GIVE)}` once, with your answer."
        schema = json.dumps(schema_of(self.model), ensure_ascii=False)
        return f"Your last reply is one JSON value that fits this JSON Schema, and nothing else:\n{schema}"

    def build_role(self) -> Role:
        """Build the role that reads answers and returns an invalid one to the model with its problem (R0.96)."""
        from daiku.team.role import Role  # when used

        spec = self.spec
        return Role(with_tool_call(spec, self._read), tools=(spec,), schema=spec.parameters)

    def _read(
        self, message: AssistantMessage, _messages: tuple[Message, ...], cut: bool
    ) -> AssistantMessage | Unreadable:
        if message.calls:
            return message
        value = read_json(message.text, self._validate, cut=cut)
        if isinstance(value, Unreadable):
            return Unreadable(value.problem)
        text = Text(json.dumps(value, ensure_ascii=False))
        return AssistantMessage(text=text, thinking=message.thinking)

    def _validate(self, value: JsonValue) -> JsonValue:
        """Return the value unchanged if it is valid. Raises ValueError."""
        self._parse(value)
        return value


def build_typed_output(output: object) -> TypedOutput | None:
    """Return the typed output of a type; None for text. Raises TypeError if pydantic cannot check it."""
    if output is None or output is str:
        return None
    if isfunction(output) or isbuiltin(output):  # pydantic would check the arguments of its calls
        raise TypeError(
            f"Agent: `output` is a type that pydantic can check, not a function ({output!r:.80})."
        )
    try:
        if isinstance(output, type) and issubclass(output, BaseModel):
            output.model_rebuild()
            if schema_of(output)["type"] == "object":
                return TypedOutput(output, wrapped=False)
        make: Callable[..., type[BaseModel]] = create_model
        model = make("Output", result=(output, Field(description="the answer")))
        model.model_rebuild()
        schema_of(model)
    except (PydanticSchemaGenerationError, PydanticUserError, ValidationError, NameError) as wrong:
        why = str(wrong).split("\n", 1)[0]
        raise TypeError(
            f"Agent: `output` is a type that pydantic can check, not {output!r:.80}: {why}"
        ) from wrong
    return TypedOutput(model, wrapped=True)
