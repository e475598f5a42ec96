"""What is recorded: a module that returns its loss, and its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dcrecord.outputs import is_held, split_loss

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

    differentiable   leaves held outputs as they are: a compiled backward takes a gradient of each, and autograd gives zeros
    autocast   device type and dtype of torch.autocast around the body's forward, or None
    hold       names of the outputs to hold, or of what they lie in; None holds all that the body returns
    names      names of the inputs, for messages
    """

    def __init__(
        self,
        body: nn.Module,
        call: Call,
        hold: tuple[str, ...] | None,
        autocast: tuple[str, torch.dtype] | None,
        names: tuple[str, ...],
        differentiable: bool = False,
    ) -> None:
        super().__init__()
        self.body = body
        self.call = call
        self.hold = hold
        self.autocast = autocast
        self.names = names
        self.differentiable = differentiable

    def forward(self, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.autocast is None:
            returned = self.call(self.body, *inputs)
        else:
            device, dtype = self.autocast
            with torch.autocast(device, dtype=dtype):
                returned = self.call(self.body, *inputs)
        loss, others = split_loss(returned)
        held = {name: tensor for name, tensor in others.items() if is_held(name, self.hold)}
        if not self.differentiable:
            held = {name: tensor.detach() for name, tensor in held.items()}
        return {"loss": loss, **held}


def call_by_position(body: nn.Module, *inputs: torch.Tensor) -> Any:
    """The call of a module whose function returned a tuple of inputs."""
    return body(*inputs)


def call_by_name(names: tuple[str, ...]) -> Call:
    """The call of a module whose function returned its inputs as a mapping."""

    def call(body: nn.Module, *inputs: torch.Tensor) -> Any:
        return body(**dict(zip(names, inputs)))

    return call
