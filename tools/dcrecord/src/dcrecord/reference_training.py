"""The reference training: a recorded graph run with PyTorch from seeded weights and inputs (docs/reference/formats.md, dc-reference/1).

Data-parallel ranks are simulated in one process: each rank's micro-steps run one after the other, and the gradients are
averaged. Every number that decides a bit is fixed in docs/reference/formats.md, so that dc-run can do the same sharded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dcrecord.errors import RecorderError
from dcrecord.interpret import Interpreter
from dcrecord.seeded import INPUT_SCALE, WEIGHT_SCALE, fnv1a, splitmix64, uniform

Document = dict[str, Any]

# Elements that are made at once.
_BLOCK_ELEMENTS = 2**20


@dataclass(frozen=True)
class AdamW:
    """Constants of the optimizer; every parameter decays."""

    lr: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.1


@dataclass(frozen=True)
class Settings:
    """One reference training."""

    steps: int = 5
    accumulation: int = 1
    ranks: int = 1
    seed: int = 0
    optimizer: AdamW = field(default_factory=AdamW)


@dataclass
class Step:
    """What a step computed: losses [rank][micro-step], and gradients in float32 by parameter number."""

    losses: list[list[float]]
    gradients: dict[int, Tensor]

    @property
    def loss(self) -> float:
        """Mean over ranks and micro-steps, in float64."""
        every = [loss for of_rank in self.losses for loss in of_rank]
        return sum(every) / len(every)


def seeded_parameter(entry: dict[str, Any], value: dict[str, Any], seed: int) -> Tensor:
    """Weights: uniform with deviation 0.02; those of one dimension are 1, and 0 where the name ends in `bias`."""
    dtype = getattr(torch, value["dtype"])
    if len(value["shape"]) <= 1:
        return torch.full(value["shape"], 0.0 if entry["name"].endswith("bias") else 1.0, dtype=dtype)
    blocks = _blocks(seed ^ fnv1a(entry["name"]), prod(value["shape"]))
    elements = np.concatenate([uniform(words, WEIGHT_SCALE) for words in blocks])
    return torch.from_numpy(elements).reshape(value["shape"]).to(dtype)


def seeded_input(entry: dict[str, Any], value: dict[str, Any], place: str, seed: int) -> Tensor:
    """Contents of an input; `place` is `rank/step/micro-step`, and for inputs after the first `/name` as well."""
    dtype, vocabulary = getattr(torch, value["dtype"]), entry["fill"].get("vocabulary")
    blocks = _blocks(seed ^ fnv1a(place), prod(value["shape"]))
    if vocabulary is None:
        elements = np.concatenate([uniform(words, INPUT_SCALE) for words in blocks])
    else:
        elements = np.concatenate([(words % np.uint64(vocabulary)).astype(np.int64) for words in blocks])
    return torch.from_numpy(elements).reshape(value["shape"]).to(dtype)


def _blocks(state: int, count: int) -> Iterator[np.ndarray]:
    for start in range(0, max(count, 1), _BLOCK_ELEMENTS):
        yield splitmix64(state, start, min(_BLOCK_ELEMENTS, count - start))


class ReferenceTraining:
    """Parameters, their float32 copies and the optimizer's state; `run` goes one step on."""

    def __init__(self, document: Document, settings: Settings, device: torch.device) -> None:
        _check(document)
        self.document = document
        self.settings = settings
        self.interpreter = Interpreter.of(document, device)
        self.buffers = self.interpreter.buffers()
        self.parameters: dict[int, Tensor] = {}
        values = document["values"]
        for entry in document["params"]:
            data = seeded_parameter(entry, values[entry["value"]], settings.seed)
            self.parameters[entry["value"]] = self.interpreter.place(entry["value"], data)
        outputs = document["graphs"][1]["outputs"]
        self.trained = {output["param"]: document["params"][output["param"]]["value"] for output in outputs}
        self.masters = {param: self.parameters[value].float().clone() for param, value in self.trained.items()}
        self.first_moments = {param: torch.zeros_like(master) for param, master in self.masters.items()}
        self.second_moments = {param: torch.zeros_like(master) for param, master in self.masters.items()}

    def run(self, step: int, report: Callable[[str], None] = lambda _: None) -> Step:
        """Runs step number `step`, from 0, and updates the parameters."""
        losses: list[list[float]] = []
        total: dict[int, Tensor] = {}
        for rank in range(self.settings.ranks):
            of_rank: dict[int, Tensor] = {}
            losses.append([])
            for micro_step in range(self.settings.accumulation):
                loss, gradients = self._micro_step(f"{rank}/{step}/{micro_step}")
                losses[-1].append(loss)
                _add(of_rank, gradients)
                report(f"step {step}, rank {rank}, micro-step {micro_step}: loss {loss:.6f}")
            _add(total, of_rank)
        gradients = {param: gradient / self.settings.ranks for param, gradient in sorted(total.items())}
        self._update(gradients, step + 1)
        return Step(losses, gradients)

    @torch.no_grad()
    def _micro_step(self, place: str) -> tuple[float, dict[int, Tensor]]:
        """Loss, not divided, and gradients in float32 by parameter number."""
        given = {**self.parameters, **self.buffers}
        for index, entry in enumerate(self.document["inputs"]):
            where = place if index == 0 else f"{place}/{entry['name']}"
            data = seeded_input(entry, self.document["values"][entry["value"]], where, self.settings.seed)
            given[entry["value"]] = self.interpreter.place(entry["value"], data)
        forward, backward = self.document["graphs"]
        given |= self.interpreter.run(forward, given)
        returned = next(output["value"] for output in forward["outputs"] if output["kind"] == "loss")
        loss = given[returned]
        for entry in backward["inputs"]:
            if entry["kind"] == "tangent":
                of_loss = entry["of"] == returned
                given[entry["value"]] = torch.full_like(given[entry["of"]], 1.0 / self.settings.accumulation if of_loss else 0.0)
        results = self.interpreter.run(backward, given)
        gradients = {output["param"]: results[output["value"]].float() for output in backward["outputs"]}
        return float(loss), gradients

    @torch.no_grad()
    def _update(self, gradients: dict[int, Tensor], count: int) -> None:
        """AdamW as torch._fused_adamw_ computes it; parameters become the rounded float32 copies."""
        constants = self.settings.optimizer
        for param, gradient in gradients.items():
            master = self.masters[param]
            torch._fused_adamw_(
                [master],
                [gradient.contiguous()],
                [self.first_moments[param]],
                [self.second_moments[param]],
                [],
                [torch.tensor(float(count), device=master.device)],
                lr=constants.lr,
                beta1=constants.beta1,
                beta2=constants.beta2,
                weight_decay=constants.weight_decay,
                eps=constants.eps,
                amsgrad=False,
                maximize=False,
            )
            self.parameters[self.trained[param]].copy_(master)


def _add(total: dict[int, Tensor], more: dict[int, Tensor]) -> None:
    for param, gradient in more.items():
        total[param] = total[param] + gradient if param in total else gradient


def _check(document: Document) -> None:
    directions = [graph["direction"] for graph in document["graphs"]]
    if directions != ["forward", "backward"]:
        raise RecorderError(f"the graphs are {directions}: expected one forward and one backward (no graph breaks)")
