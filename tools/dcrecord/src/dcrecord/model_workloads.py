"""Workloads of models by their configuration: those of transformers, and stacks of linear layers."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from dcrecord.architectures import Architecture, LinearStack
from dcrecord.building import Builder, build_without_weights
from dcrecord.errors import RecorderError
from dcrecord.options import Options
from dcrecord.training_tasks import Sizes
from dcrecord.transformers_models import TransformersModel, find_model, quiet, sentence_of
from dcrecord.workload import Fill, Workload, call_by_position


def model_workload(
    architecture: Architecture | LinearStack, options: Options, builder: Builder = build_without_weights
) -> Workload:
    """The workload of an architecture; options without batch or sequence take the architecture's own.

    builder   how modules are built: without memory for their weights, unless somebody wants to run them
    """
    if isinstance(architecture, LinearStack):
        return _linear_stack(architecture, options, builder)
    return _of_transformers(architecture, options, builder)


def _linear_stack(stack: LinearStack, options: Options, builder: Builder) -> Workload:
    rows = (options.batch or stack.batch) * (options.sequence or stack.sequence)

    def build() -> nn.Module:
        return nn.Sequential(*[nn.Linear(stack.width, stack.width, bias=False) for _ in range(stack.depth)])

    body, unknown = builder(build, options.torch_dtype)
    rows_of_input = torch.zeros(rows, stack.width, dtype=options.torch_dtype, device="meta")
    return Workload(stack.name, body, call_by_position, {"input": rows_of_input}, {"input": Fill()}, rows, unknown)


def _of_transformers(architecture: Architecture, options: Options, builder: Builder) -> Workload:
    model = find_model(architecture.config, architecture.source)
    sequence = options.sequence or architecture.sequence
    _check_sequence(model, options, sequence, architecture.source)
    batch = options.batch or architecture.batch
    sizes = Sizes(batch, sequence or 1, options.torch_dtype)
    try:
        with quiet():
            inputs = model.task.inputs(model.config, sizes)
            _check_call(model, inputs, architecture.source)
            body, unknown = builder(lambda: _build(model, options), options.torch_dtype)
            _settle_frequencies(body, sequence or 1)
    except RecorderError:
        raise
    except Exception as error:
        raise RecorderError(
            f"{architecture.source}: {model.model_class.__name__} cannot be built: {sentence_of(error, architecture.config)}"
        ) from error
    return Workload(
        architecture.name,
        body,
        model.task.call(tuple(inputs)),
        {name: tensor for name, (tensor, _) in inputs.items()},
        {name: fill for name, (_, fill) in inputs.items()},
        batch * (sequence or 1),
        unknown,
    )


def _build(model: TransformersModel, options: Options) -> nn.Module:
    body = model.model_class._from_config(model.config, dtype=options.torch_dtype)
    _cast_parameters(body, options.torch_dtype)
    if body.loss_type is None:
        body.loss_type = "ForCausalLM"  # what transformers takes then, and logs, which cannot be traced
    return body.train()


def _cast_parameters(body: nn.Module, dtype: torch.dtype) -> None:
    """Loading a checkpoint casts all parameters but those that the class keeps; a model that is built may leave some."""
    kept = getattr(body, "_keep_in_fp32_modules_strict", None) or ()
    for name, parameter in body.named_parameters():
        if parameter.is_floating_point() and not any(f".{each}." in f".{name}." for each in kept):
            parameter.data = parameter.data.to(dtype)


def _settle_frequencies(body: nn.Module, sequence: int) -> None:
    """Rotary frequencies that follow the length of the sequence ("dynamic", "longrope") look at the positions in each
    forward, which cannot be traced; here that length is known."""
    positions = torch.arange(sequence)[None]
    for module in body.modules():
        kind = getattr(module, "rope_type", None)
        kinds = kind if isinstance(kind, dict) else {None: kind}
        if not any(each == "longrope" or "dynamic" in (each or "") for each in kinds.values()):
            continue
        with torch.no_grad():
            for layer_type in kinds:
                module(torch.zeros(1), positions, *([] if layer_type is None else [layer_type]))
        module.rope_type = dict.fromkeys(kinds, "default") if isinstance(kind, dict) else "default"


def _check_sequence(model: TransformersModel, options: Options, sequence: int | None, source: str) -> None:
    if model.task.of_images:
        if options.sequence:
            raise RecorderError(
                f"--seq {options.sequence}: {source}: {model.model_class.__name__} takes images; expected --batch only"
            )
    elif model.positions is not None and sequence > model.positions:
        raise RecorderError(f"--seq {sequence}: {source} has positions for at most {model.positions} tokens")


def _check_call(model: TransformersModel, inputs: dict[str, Any], source: str) -> None:
    """Some classes of a task compute no loss of it, or take no mask."""
    accepted = inspect.signature(model.model_class.forward).parameters
    for name in [*inputs, *([] if "start_positions" in inputs else ["labels"])]:
        if name not in accepted:
            raise RecorderError(f"{source}: {model.model_class.__name__} takes no {name}: expected a class that does")
