"""The forward and backward that DeepCompile gets of a job, as a dc-graph/1 document, by way of the recorder."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from dcsim_deepspeed import job
from dcsim_deepspeed.generator_states import without_generator_states

_aten, _prims = torch.ops.aten, torch.ops.prims


@dataclass
class Half:
    """A forward or backward as it was captured.

    inputs          real inputs of a forward, in the order of its placeholders
    param_indices   (position of an input, DeepSpeed's id, shape) of each parameter
    returned        outputs of a forward that its caller gets; those behind them are saved
    """

    module: GraphModule
    inputs: tuple[Any, ...]
    param_indices: list[tuple[int, int, Any]]
    returned: int


def copied(module: GraphModule, manager: Any) -> GraphModule:
    """A copy, in which parameters are whole: DeepSpeed shows them empty to the compiler behind it."""
    graph, copies = Graph(), {}
    for node in module.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if node.op == "placeholder" and node.name in manager.params:
            parameter = manager.params[node.name]
            copies[node].meta["val"] = torch.empty(tuple(parameter.shape), dtype=parameter.dtype, device="meta")
    return GraphModule(module, graph)


def document_of_job(engine: Any, name: str, forward: Half, backward: Half) -> dict[str, Any]:
    """The document. Throws RecorderError, naming node and module, for what cannot be recorded."""
    from dcrecord.graph_file import FORMAT
    from dcrecord.integer_ranges import check_integer_ranges
    from dcrecord.module_paths import ModulePaths
    from dcrecord.refuse import check_runs_in_cpp
    from dcrecord.replay import replay
    from dcrecord.serialise import document_of
    from dcrecord.version import VERSION

    import deepspeed

    _mark_repeated(forward.module.graph, backward.module.graph)
    forward.returned = without_generator_states(forward.module.graph, backward.module.graph, forward.returned)
    for half in (forward, backward):
        _in_aten(half.module.graph)
    step = _Step(engine, forward, backward)
    captured = step.captured()
    check_runs_in_cpp(captured, ModulePaths(captured.forward), engine.module)
    device = next(engine.module.parameters()).device
    device = torch.device("cuda", 0) if device.type == "cuda" else device
    document = {
        "format": FORMAT,
        "name": name,
        "recorder": {
            "dcrecord": VERSION,
            "torch": job.plain_version(torch.__version__),
            "transformers": _version_of("transformers"),
            "deepspeed": job.plain_version(deepspeed.__version__),
            "command": " ".join(sys.argv),
        },
        "options": step.options(captured.output_names),
        "tokens": step.tokens(),
        **document_of(captured, replay(captured, device), step.contents()),
    }
    check_integer_ranges(document)
    return document


def _mark_repeated(forward: Graph, backward: Graph) -> None:
    """A node of the backward that is called like one of the forward repeats it."""
    from dcrecord.partition import JOINT_NODE

    repeated = {node.name for node in forward.nodes if node.op == "call_function"}
    for node in forward.nodes:
        node.meta[JOINT_NODE] = node.name
    for position, node in enumerate(backward.nodes):
        node.meta[JOINT_NODE] = node.name if node.name in repeated else ("backward", position)


def _version_of(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _in_aten(graph: Graph) -> None:
    """Inductor's decompositions write casts and counts with operators of torch.prims; everything else is ATen's."""
    for node in list(graph.nodes):
        if node.target is _prims.convert_element_type.default:
            _replace(graph, node, _aten._to_copy.default, (node.args[0],), {"dtype": node.args[1]})
        elif node.target is _prims.iota.default:
            start, step = node.kwargs.get("start", 0), node.kwargs.get("step", 1)
            kept = {key: node.kwargs[key] for key in ("dtype", "device") if key in node.kwargs}
            end = start + node.args[0] * step
            _replace(graph, node, _aten.arange.start_step, (start, end, step), kept)


def _replace(graph: Graph, node: Node, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with graph.inserting_before(node):
        replacement = graph.call_function(target, args, kwargs)
    replacement.meta = dict(node.meta)
    node.replace_all_uses_with(replacement)
    graph.erase_node(node)
    replacement._rename(node.name)  # by which Inductor orders what nothing else does


class _Step:
    """What the inputs and outputs of a job's two graphs are."""

    def __init__(self, engine: Any, forward: Half, backward: Half) -> None:
        from dcrecord.errors import RecorderError

        self._refusal = RecorderError
        self.engine = engine
        self.forward = forward
        self.backward = backward
        self.names = job.parameter_names(engine)
        self.kinds: dict[str, Any] = {}
        self.buffers: dict[str, Tensor] = {}
        self.inputs: dict[str, Tensor] = {}
        self._name_inputs()

    def _name_inputs(self) -> None:
        from torch._functorch._aot_autograd.descriptors import BufferAOTInput, ParamAOTInput, PlainAOTInput

        parameters = {position: self.names[ds_id] for position, ds_id, _ in self.forward.param_indices}
        buffers = {id(buffer): name for name, buffer in self.engine.module.named_buffers()}
        addresses = {b.data_ptr(): name for name, b in self.engine.module.named_buffers() if b.numel()}
        for position, node in enumerate(_placeholders(self.forward)):
            if position in parameters:
                self.kinds[node.name] = ParamAOTInput(parameters[position])
                continue
            value = self.forward.inputs[position] if position < len(self.forward.inputs) else None
            if not isinstance(value, Tensor):
                raise self._refusal(
                    f"input {position} of its graph ({node.name}) is no tensor but {type(value).__name__}: "
                    "expected static shapes, and numbers that are constants of the code"
                )
            name = buffers.get(id(value)) or (addresses.get(value.data_ptr()) if value.numel() else None)
            if name is not None:
                self.kinds[node.name] = BufferAOTInput(name)
                self.buffers[name] = value
            else:
                self.kinds[node.name] = PlainAOTInput(len(self.inputs))
                self.inputs[f"input_{len(self.inputs)}"] = value

    def captured(self) -> Any:
        """The recorder's form of the two graphs: the loss is the forward's first output."""
        from dcrecord.capture import Captured

        self._put_loss_first()
        self._name_tangents()
        at = {position: self.names[ds_id] for position, ds_id, _ in self.backward.param_indices}
        gradients = _outputs(self.backward)
        return Captured(
            self.forward.module,
            self.backward.module,
            self.kinds,
            ["loss", *(f"output_{index}" for index in range(1, self.forward.returned))],
            [at.get(position) for position in range(len(gradients))],
            joint=None,
            updates=0,
        )

    def _put_loss_first(self) -> None:
        outputs = _outputs(self.forward)
        returned, saved = outputs[: self.forward.returned], outputs[self.forward.returned :]
        losses = [node for node in returned if _is_scalar(node)]
        if not losses:
            raise self._refusal(
                "its module returns no scalar loss: expected the loss to be computed inside of the compiled module"
            )
        loss = losses[0]
        held = [node for node in returned if node is not loss and isinstance(node, Node)]
        if mutated := [node for node in held if node.op == "placeholder"]:
            raise self._refusal(f"its forward returns an input as it is ({mutated[0].name}): expected new tensors")
        self.forward.returned = 1 + len(held)
        self.forward.module.graph.output_node().args = ((loss, *held, *saved),)

    def _name_tangents(self) -> None:
        """Behind what the forward saves, the backward gets tangents: each of the next output of its shape and dtype."""
        from torch._functorch._aot_autograd.descriptors import PlainAOTOutput, TangentAOTInput

        outputs = _outputs(self.forward)
        free = list(enumerate(outputs[: self.forward.returned]))
        saved = len(outputs) - self.forward.returned
        for node in _placeholders(self.backward)[saved:]:
            fitting = [index for index, output in free if _same_kind(output, node)]
            if not fitting:
                raise self._refusal(f"input {node.name} of its backward is neither saved nor an output's gradient")
            free = [entry for entry in free if entry[0] != fitting[0]]
            self.kinds[node.name] = TangentAOTInput(PlainAOTOutput(fitting[0]))

    def contents(self) -> Any:
        from dcrecord.serialise import Contents
        from dcrecord.workload import Fill

        others: dict[int, list[str]] = {}
        for name, parameter in self.engine.module.named_parameters(remove_duplicate=False):
            others.setdefault(id(parameter), []).append(name)
        parameters = []
        for name, parameter in self.engine.module.named_parameters():
            whole = torch.empty(tuple(parameter.ds_shape), dtype=parameter.dtype, device="meta")
            whole.requires_grad_(parameter.requires_grad)
            parameters.append((name, whole, [each for each in others[id(parameter)] if each != name]))
        fills = {name: Fill(self._vocabulary(value)) for name, value in self.inputs.items()}
        return Contents(parameters=parameters, buffers=self.buffers, fills=fills)

    def _vocabulary(self, value: Tensor) -> int | None:
        """Of integers: the model's, where it says one and the input is no mask; else what the first batch needs."""
        if value.is_floating_point() or value.is_complex():
            return None
        most = int(value.max()) if value.numel() else 0
        said = getattr(getattr(self.engine.module, "config", None), "vocab_size", None)
        return said if isinstance(said, int) and 1 < most < said else max(2, most + 1)

    def tokens(self) -> int:
        """Of the first input: its elements where they are integers, else its rows."""
        first = next(iter(self.inputs.values()), None)
        if first is None or first.dim() == 0:
            return 1
        return first.shape[0] if first.is_floating_point() else first.numel()

    def options(self, output_names: list[str]) -> dict[str, Any]:
        first = next(iter(self.inputs.values()), None)
        shape = [] if first is None else list(first.shape)
        autocast = self.engine.torch_autocast_enabled() if hasattr(self.engine, "torch_autocast_enabled") else False
        return {
            "batch": shape[0] if shape else None,
            "sequence": shape[1] if len(shape) > 1 else None,
            "dtype": job.plain_dtype(next(self.engine.module.parameters()).dtype),
            "attention": "auto",
            "partitioner": "mincut",
            "activation_checkpointing": False,
            "autocast": job.plain_dtype(self.engine.torch_autocast_dtype()) if autocast else None,
            "frozen": [name for name, each in self.engine.module.named_parameters() if not each.requires_grad],
            "hold": output_names[1:],
        }


def _placeholders(half: Half) -> list[Node]:
    return [node for node in half.module.graph.nodes if node.op == "placeholder"]


def _outputs(half: Half) -> list[Any]:
    return list(half.module.graph.output_node().args[0])


def _is_scalar(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return isinstance(value, Tensor) and value.dim() == 0 and value.is_floating_point()


def _same_kind(output: Any, tangent: Node) -> bool:
    one = output.meta.get("val") if isinstance(output, Node) else None
    other = tangent.meta.get("val")
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return False
    return one.shape == other.shape and one.dtype == other.dtype
