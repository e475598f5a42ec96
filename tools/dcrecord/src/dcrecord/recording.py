"""From a workload to a graph document: freeze, make fake, trace, replay, write down."""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from dcrecord.building import adopt_tensors, buffer_contents, fake_parameter, parameter_names, replace_parameters
from dcrecord.capture import Captured, capture
from dcrecord.checkpointing import checkpoint_blocks, checkpoint_matching
from dcrecord.cuda_autocast import cuda_autocast_rules
from dcrecord.cuda_operators import Attention, cuda_operators
from dcrecord.dropout import remove_dropout, settle_layer_drops, without_dropout
from dcrecord.dtype_rules import check_dtypes
from dcrecord.errors import RecorderError, did_you_mean, without_logging
from dcrecord.explain import explain, failing_module
from dcrecord.hidden_size import hidden_size_of
from dcrecord.integer_ranges import check_integer_ranges
from dcrecord.module_paths import ModulePaths
from dcrecord.options import AUTOMATIC_KERNELS, HALF_PRECISION, Options, Reporter, torch_dtype
from dcrecord.outputs import is_held
from dcrecord.refuse import check_runs_in_cpp
from dcrecord.replay import replay
from dcrecord.serialise import Contents, document_of
from dcrecord.transformers_attention import install_capturing_hooks, plain_attention, remember_text_configurations
from dcrecord.unrecordable import check_modules
from dcrecord.workload import TrainingStep, Workload

# Seconds per layer (module without modules in it) from the start of tracing to the end; only used to say how long it
# may take. `python -m dcrecord qwen3-8b`, 436 layers, took 21 s of them on one core of a server CPU.
_SECONDS_PER_LAYER = 0.05
_MASKS_LEFT_OUT = (
    "left out masks that hide nothing; a job that torch.compile traces builds them, and takes longer, unless it calls "
    "dcsim_deepspeed.leave_out_masks(model) first: --build-masks records it so"
)


def record(workload: Workload, options: Options, report: Reporter) -> dict[str, Any]:
    """The keys `options` to `graphs` of the document that describes one micro-step of `workload`."""
    return record_forms(workload, options, report)[0]


def record_forms(
    workload: Workload, options: Options, report: Reporter
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The same, and by name those of its compiled forms where `options` ask for them."""
    prepare(workload.body, options)
    if options.no_dropout:
        report(remove_dropout(workload.body))
    settle_layer_drops(workload.body)
    contents = contents_of(workload)
    step = training_step(workload, options, device_type="cpu")
    report(f"tracing {_size_of(workload.body)}")
    with fake_tensors(workload) as inputs, traced_as_on_cuda(workload.body, options, report) as attention:
        captured = _capture_or_explain(step, inputs, options)
        to_compile = captured
        if options.backend == "inductor" and len(captured.output_names) > 1:
            step.differentiable = True
            to_compile = _capture_or_explain(step, inputs, options)
    options = replace(options, attention=_kernel_of(attention, options))
    report(f"finding shapes and storages of {_node_count(captured):,} nodes")
    document = describe(captured, contents, workload, options)
    if options.backend == "aten":
        return document, {}
    from dcrecord.inductor.record import compiled_documents

    head = {key: document[key] for key in ("options", "tokens")}
    compiled = compiled_documents(to_compile, contents, options, report)
    return document, {name: {**head, **form} for name, form in compiled.items()}


def describe(captured: Captured, contents: Contents, workload: Workload, options: Options) -> dict[str, Any]:
    """Checks and writes down what was captured."""
    paths = ModulePaths(captured.forward)
    check_runs_in_cpp(captured, paths, workload.body)
    check_dtypes(captured, paths)
    _check_held(options.hold, captured.output_names)
    held = captured.output_names[1:]
    hidden_size = hidden_size_of(workload.body)
    document = {
        "options": {
            "batch": options.batch,
            "sequence": options.sequence,
            "dtype": options.dtype,
            "attention": options.attention,
            "partitioner": options.partitioner,
            "activation_checkpointing": list(options.checkpoint) or options.activation_checkpointing,
            "autocast": options.autocast,
            "frozen": list(options.frozen),
            "hold": held,
            **({"build_masks": True} if options.build_masks else {}),
            **({} if hidden_size is None else {"hidden_size": hidden_size}),
        },
        "tokens": workload.tokens,
        **document_of(captured, replay(captured), contents),
    }
    check_integer_ranges(document)
    return document


def contents_of(workload: Workload) -> Contents:
    """Names, shapes and buffer contents, taken before parameters and buffers become fake."""
    parameters = dict(workload.body.named_parameters())
    names = parameter_names(workload.body)
    return Contents(
        parameters=[(name, parameters[name], tied) for name, tied in names.items()],
        buffers=buffer_contents(workload.body, workload.unknown_storages),
        fills=workload.fills,
    )


def training_step(workload: Workload, options: Options, device_type: str) -> TrainingStep:
    autocast = None if options.autocast is None else (device_type, torch_dtype(options.autocast))
    return TrainingStep(workload.body, workload.call, options.hold, autocast, tuple(workload.inputs))


def prepare(body: nn.Module, options: Options) -> None:
    """Makes buffers of modules' other tensors, freezes parameters and checkpoints modules as asked."""
    check_modules(body)
    adopt_tensors(body)
    install_capturing_hooks(body)
    remember_text_configurations(body)
    freeze(body, options.frozen)
    if options.activation_checkpointing:
        checkpoint_blocks(body)
    checkpoint_matching(body, options.checkpoint)


def freeze(body: nn.Module, patterns: tuple[str, ...]) -> None:
    """Parameters whose name matches a pattern (`model.embed_tokens.*`) are not trained."""
    names = [name for name, _ in body.named_parameters(remove_duplicate=False)]
    for pattern in patterns:
        matching = fnmatch.filter(names, pattern)
        if not matching:
            raise RecorderError(f"--freeze '{pattern}' matches no parameter{did_you_mean(pattern, names)}")
        for name in matching:
            body.get_parameter(name).requires_grad_(False)


@contextmanager
def fake_tensors(workload: Workload) -> Iterator[tuple[Tensor, ...]]:
    """Inside, the body's parameters and buffers are fake CPU tensors; gives the fake inputs."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        replace_parameters(workload.body, fake_parameter)
        for owner in workload.body.modules():
            for name, buffer in owner._buffers.items():
                if buffer is not None:
                    owner._buffers[name] = torch.empty_strided(buffer.shape, buffer.stride(), dtype=buffer.dtype)
        yield tuple(
            torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype) for tensor in workload.inputs.values()
        )


@contextmanager
def traced_as_on_cuda(body: nn.Module, options: Options, report: Reporter) -> Iterator[Attention]:
    """Everything that makes a trace on CPU tensors equal one on CUDA tensors; gives what attention became."""
    with ExitStack() as stack:
        left_out = stack.enter_context(plain_attention(body, options.attention, options.build_masks))
        attention = stack.enter_context(cuda_operators(options.attention, options.no_dropout))
        if options.no_dropout:
            stack.enter_context(without_dropout())
        if options.autocast is not None:
            stack.enter_context(cuda_autocast_rules())
        yield attention
        if left_out and options.backend == "inductor":
            report(_MASKS_LEFT_OUT)


def _kernel_of(attention: Attention, options: Options) -> str:
    """The kernel of all calls where PyTorch's order gave one; the order where it gave several; any without a call."""
    if attention.kernel not in AUTOMATIC_KERNELS or len(attention.used) > 1:
        return attention.kernel
    computed_in = options.autocast or options.dtype
    return next(iter(attention.used), "flash" if computed_in in HALF_PRECISION else "efficient")


def _capture_or_explain(step: TrainingStep, inputs: tuple[Tensor, ...], options: Options) -> Captured:
    with warnings.catch_warnings(record=True) as warned, without_logging():
        warnings.simplefilter("always")  # of a derivative that fails, autograd tells the place in a warning
        try:
            captured = capture(step, inputs, options.partitioner, keep_joint=options.backend != "aten")
        except (Exception, SystemExit) as error:
            said = [str(warning.message) for warning in warned]
            raise explain(error, said, failing_module(step, inputs)) from error
    for warning in {(str(each.message), each.filename, each.lineno): each for each in warned}.values():
        if _is_of_tracing(warning.filename):
            continue
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return captured


def _is_of_tracing(path: str) -> bool:
    """Whether a warning is about how PyTorch traces, of which nobody who records has to know."""
    return any(f"torch/{part}/" in Path(path).as_posix() for part in ("_dynamo", "_functorch", "_subclasses", "autograd", "fx"))


def _size_of(body: nn.Module) -> str:
    """`33,804 parameters in 34 layers`, and how long that may take when it is long."""
    parameters = sum(parameter.numel() for parameter in body.parameters())
    layers = sum(not any(module.children()) for module in body.modules())
    seconds = _SECONDS_PER_LAYER * layers
    estimate = f", about {seconds:.0f} s" if seconds >= 3 else ""
    return f"{parameters:,} parameters in {layers:,} {'layer' if layers == 1 else 'layers'}{estimate}"


def _check_held(hold: tuple[str, ...] | None, output_names: list[str]) -> None:
    missing = [name for name in hold or () if not any(is_held(output, (name,)) for output in output_names[1:])]
    if missing:
        raise RecorderError(f"--hold {missing[0]}: the module returns no output of that name beside its loss")


def _node_count(captured: Captured) -> int:
    return len(captured.forward.graph.nodes) + len(captured.backward.graph.nodes)
