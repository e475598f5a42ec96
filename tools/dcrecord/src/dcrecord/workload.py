"""What is recorded: a module that returns its loss, and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dcrecord.errors import RecorderError

# Calls a module with the inputs of a training step, in order.
Call = Callable[..., Any]


@dataclass(frozen=True)
class Fill:
    """What an input holds in a training step: token ids below `vocabulary`, or else uniform floats."""

    vocabulary: int | None = None

    def to_json(self) -> dict[str, Any]:
        if self.vocabulary is None:
            return {"kind": "uniform"}
        return {"kind": "tokens", "vocabulary": self.vocabulary}


@dataclass
class Workload:
    """A module and what one micro-step feeds it.

    body               the module whose parameters are trained
    call               calls the body with the inputs; its result is read by `split_loss`
    inputs             tensors by name, in the order in which `call` takes them
    fills              what each input holds
    tokens             tokens or rows of one micro-step
    unknown_storages   storages whose contents the build did not compute (building.py)
    """

    name: str
    body: nn.Module
    call: Call
    inputs: dict[str, torch.Tensor]
    fills: dict[str, Fill]
    tokens: int
    unknown_storages: set[int]


class TrainingStep(nn.Module):
    """Runs `body` and returns its loss and the outputs that the caller holds, as a dict, loss first.

    Held outputs are detached: nobody differentiates them, so the backward graph gets one tangent only,
    that of the loss.

    autocast   device type and dtype of torch.autocast around the body's forward, or None
    hold       names of the outputs to hold; None holds all that the body returns
    names      names of the inputs, for messages
    """

    def __init__(
        self,
        body: nn.Module,
        call: Call,
        hold: tuple[str, ...] | None,
        autocast: tuple[str, torch.dtype] | None,
        names: tuple[str, ...],
    ) -> None:
        super().__init__()
        self.body = body
        self.call = call
        self.hold = hold
        self.autocast = autocast
        self.names = names

    def forward(self, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.autocast is None:
            returned = self.call(self.body, *inputs)
        else:
            device, dtype = self.autocast
            with torch.autocast(device, dtype=dtype):
                returned = self.call(self.body, *inputs)
        loss, others = split_loss(returned)
        held = {name: tensor.detach() for name, tensor in others.items() if self.hold is None or name in self.hold}
        return {"loss": loss, **held}


def split_loss(returned: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss, and the further tensors by name, of what a module returned.

    A mapping (transformers' outputs are mappings) has its loss under "loss"; a tuple has it first, and
    its other elements are called output_1, output_2, ...; a lone tensor that is no scalar gets the mean
    of its elements, in float32, as its loss, and is itself called "output".
    """
    if isinstance(returned, torch.Tensor):
        if returned.dim() == 0:
            return returned, {}
        return returned.float().mean(), {"output": returned}
    if isinstance(returned, Mapping):
        named = dict(returned.items())
    elif isinstance(returned, (tuple, list)):
        named = {("loss" if index == 0 else f"output_{index}"): value for index, value in enumerate(returned)}
    else:
        named = {}
    loss = named.pop("loss", None)
    if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
        raise RecorderError(
            "the module does not return a scalar loss: expected a tensor, a tuple whose first element is the "
            "scalar loss, or a mapping with the scalar loss under 'loss'"
        )
    return loss, {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}


def call_by_position(body: nn.Module, *inputs: torch.Tensor) -> Any:
    """The call of a module whose function returned a tuple of inputs."""
    return body(*inputs)


def call_by_name(names: tuple[str, ...]) -> Call:
    """The call of a module whose function returned its inputs as a mapping."""

    def call(body: nn.Module, *inputs: torch.Tensor) -> Any:
        return body(**dict(zip(names, inputs)))

    return call
