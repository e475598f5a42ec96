"""From a captured joint graph to the documents of its compiled forms."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as version_of
from traceback import walk_tb
from typing import Any

import torch
from torch._functorch._aot_autograd.descriptors import BufferAOTInput, ParamAOTInput, PlainAOTInput, TangentAOTInput

from dcrecord.capture import Captured
from dcrecord.errors import RecorderError
from dcrecord.inductor.document import GraphWriter, Tables
from dcrecord.inductor.joint_on_cuda import CudaJoint, copy_updates, decompose_on_cuda, tell_modules
from dcrecord.inductor.lowering import TARGETS, Lowered, Target, lower_halves, lower_step
from dcrecord.inductor.no_gpu import ARCHITECTURE, PROPERTIES, gpu_to_compile_for
from dcrecord.inductor.regions import mark_regions, runs_alone
from dcrecord.inductor.written_step import WrittenStep
from dcrecord.module_paths import ModulePaths
from dcrecord.options import Options, Reporter
from dcrecord.serialise import Contents, base64_of, output_of

DEEPSPEED = "0.19.8"


def compiled_documents(
    captured: Captured, contents: Contents, options: Options, report: Reporter
) -> dict[str, dict[str, Any]]:
    """By name of the target: the keys `backend` and `params` to `graphs` of its document. A target for which Inductor, or
    the format, has no answer is left out, with a line that says why.

    options   `backend` says which forms; with `stand_ins` each tells what its kernels compute, and a line which have no
              such form
    """
    documents: dict[str, dict[str, Any]] = {}
    with gpu_to_compile_for(), _quiet():
        tell_modules(captured.joint)
        apart = options.backend == "inductor-layers"
        try:
            if apart and not mark_regions(captured.joint):
                raise RecorderError("--backend inductor-layers: the model has no list of modules, which it would compile")
            joint = decompose_on_cuda(captured.joint, runs_alone if apart else None)
            copy_updates(joint, captured.joint, captured.updates)
        except Exception as error:
            report(f"not compiled, the ATen graph stands alone: {_sentence(error)}")
            return documents
        for target in TARGETS:
            if target.apart != apart:
                continue
            stages = " and ".join(map(str, target.stages))
            report("lowering each layer" if apart else f"lowering for ZeRO-{stages}")
            try:
                documents[target.name] = _document(captured, joint, contents, target, options.stand_ins, report)
            except Exception as error:
                report(f"not compiled for {target.name}, the ATen graph stands: {_sentence(error)}")
    return documents


def _sentence(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = "" if isinstance(error, RecorderError) else f"{type(error).__name__}: "
    return kind + (lines[0][:200] if lines else "no message") + ("" if isinstance(error, RecorderError) else _place(error))


def _place(error: Exception) -> str:
    """The innermost method of Inductor's that an error of its own came through, by which such errors are told apart."""
    place = ""
    for frame, _ in walk_tb(error.__traceback__):
        owner = frame.f_locals.get("self")
        if type(owner).__module__.startswith("torch._inductor.codegen"):
            place = f", in {type(owner).__name__}.{frame.f_code.co_name}"
    return place


@contextmanager
def _quiet() -> Iterator[None]:
    """Inductor logs that it was stopped."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _document(
    captured: Captured, joint: CudaJoint, contents: Contents, target: Target, stand_ins: bool, report: Reporter
) -> dict[str, Any]:
    kinds = captured.input_kinds
    parameters = {name for name, kind in kinds.items() if isinstance(kind, ParamAOTInput)}
    apart = CudaJoint(copy.deepcopy(joint.graph), joint.inputs, joint.mode, joint.constants)
    lowered = lower_step(apart, parameters, len(captured.output_names), target, stand_ins)
    writer = _StepWriter(captured, contents, ModulePaths(joint.graph), joint.constants)
    document = writer.write(lowered, target)
    for name, why in writer.tables.without_stand_in.items():
        report(f"no stand-in for {name}: {why}")
    return document


def compiled_again(document: dict[str, Any], target: Target) -> dict[str, Any]:
    """The keys `backend` and `params` to `graphs` of the compiled form of a document that holds a running job's step.

    Throws RecorderError for what Inductor, or the format, has no answer to.
    """
    with gpu_to_compile_for(), _quiet():
        try:
            step = WrittenStep(document)
            captured = step.captured
            outputs = len(captured.output_names)
            paths = ModulePaths(captured.forward)
            lowered = lower_halves(captured.forward, captured.backward, step.parameters(), outputs, target)
            return _StepWriter(captured, step.contents(), paths, {}).write(lowered, target)
        except Exception as error:
            raise RecorderError(_sentence(error)) from error


class _StepWriter:
    """Writes the tables of a step's inputs, then its two graphs."""

    def __init__(
        self, captured: Captured, contents: Contents, paths: ModulePaths, constants: dict[str, torch.Tensor]
    ) -> None:
        self.captured = captured
        self.contents = contents
        self.tables = Tables()
        self.paths = paths
        self.constants = constants
        self.known: dict[str, int] = {}
        self.kind_of: dict[int, dict[str, Any]] = {}
        self.param_index: dict[str, int] = {}

    def write(self, lowered: Lowered, target: Target) -> dict[str, Any]:
        params = self._parameters()
        buffers = self._buffers()
        inputs = self._inputs()
        forward = self._forward(lowered)
        backward = self._backward(lowered, [output["value"] for output in forward["outputs"]])
        unread = {entry["value"] for entry in buffers} - {
            entry["value"] for graph in (forward, backward) for entry in [*graph["inputs"], *graph["outputs"]]
        }
        if unread:
            buffers = [entry for entry in buffers if entry["value"] not in unread]
        return {
            "backend": _backend(target),
            "params": params,
            "buffers": buffers,
            "inputs": inputs,
            "storages": self.tables.storages,
            "values": self.tables.values,
            "schemas": list(self.tables.schemas),
            "modules": list(self.tables.modules),
            "kernels": list(self.tables.kernels.values()),
            "graphs": [forward, backward],
        }

    def _holders(self, kind: type) -> dict[str, str]:
        """Names of placeholders by the name, or index, of what they are."""
        found = {}
        for holder, described in self.captured.input_kinds.items():
            if isinstance(described, kind):
                found[described.idx if kind is PlainAOTInput else described.target.removeprefix("body.")] = holder
        return found

    def _parameters(self) -> list[dict[str, Any]]:
        holders = self._holders(ParamAOTInput)
        entries = []
        for index, (name, parameter, tied) in enumerate(self.contents.parameters):
            mine = [holders[each] for each in (name, *tied) if each in holders]
            value = self._resident("param", mine, parameter, name)
            entry = {"name": name, "value": value, "requires_grad": parameter.requires_grad}
            entries.append({**entry, "tied": tied} if tied else entry)
            self.param_index.update(dict.fromkeys((name, *tied), index))
        return entries

    def _buffers(self) -> list[dict[str, Any]]:
        holders = self._holders(BufferAOTInput)
        known = {name: (holders[name], data) for name, data in self.contents.buffers.items() if name in holders}
        known.update({name: (name, data) for name, data in self.constants.items()})
        return [
            {"name": name, "value": self._resident("buffer", [holder], data, name), "data": base64_of(data)}
            for name, (holder, data) in known.items()
        ]

    def _inputs(self) -> list[dict[str, Any]]:
        holders = self._holders(PlainAOTInput)
        examples = {node.name: node.meta["val"] for node in self.captured.joint.graph.nodes if node.op == "placeholder"}
        return [
            {
                "name": name,
                "value": self._resident("input", [holders[index]], examples[holders[index]], name),
                "fill": fill.to_json(),
            }
            for index, (name, fill) in enumerate(self.contents.fills.items())
        ]

    def _resident(self, kind: str, holders: list[str], tensor: torch.Tensor, name: str) -> int:
        value = self.tables.tensor(holders[0] if holders else name, tensor)
        self.known.update(dict.fromkeys(holders, value))
        self.kind_of[value] = {"kind": kind, "value": value}
        return value

    def _held(self) -> frozenset[int]:
        return frozenset(value for value, entry in self.kind_of.items() if entry["kind"] == "buffer")

    def _forward(self, lowered: Lowered) -> dict[str, Any]:
        writer = GraphWriter(self.tables, self.paths, dict(self.known), self._held())
        returned = writer.write(lowered.forward)
        outputs: list[dict[str, Any]] = []
        for position, name in enumerate(self.captured.output_names):
            kind = {"kind": "loss"} if position == 0 else {"kind": "output"}
            further = {} if position == 0 else {"name": name, "held": True}
            outputs.append({**kind, "value": returned[position], **further})
        count = len(outputs)
        saved = dict.fromkeys(value for value in returned[count:] if value not in self.kind_of)
        outputs += [{"kind": "saved", "value": value} for value in saved]
        self.known.update(zip(lowered.forward_outputs[count:], returned[count:]))
        return {"direction": "forward", "inputs": self._graph_inputs(writer), "outputs": outputs, "ops": writer.ops}

    def _backward(self, lowered: Lowered, returned_by_forward: list[int]) -> dict[str, Any]:
        for name, described in self.captured.input_kinds.items():
            if isinstance(described, TangentAOTInput):
                example = next(n.meta["val"] for n in self.captured.joint.graph.nodes if n.name == name)
                value = self.tables.tensor(name, example)
                self.known[name] = value
                self.kind_of[value] = {"kind": "tangent", "value": value, "of": returned_by_forward[output_of(described)]}
        missing = [name for name in lowered.backward_inputs if name not in self.known]
        if missing:
            raise RecorderError(f"the backward needs {missing[0]}, which the forward does not return")
        writer = GraphWriter(self.tables, self.paths, self.known, self._held())
        returned = writer.write(lowered.backward)
        outputs = [
            {"kind": "gradient", "value": value, "param": self.param_index[name.removeprefix("body.")]}
            for value, name in zip(returned, self.captured.gradients_of)
            if name is not None and value is not None
        ]
        outputs.sort(key=lambda output: output["param"])
        return {
            "direction": "backward",
            "forward": 0,
            "inputs": self._graph_inputs(writer),
            "outputs": outputs,
            "ops": writer.ops,
        }

    def _graph_inputs(self, writer: GraphWriter) -> list[dict[str, Any]]:
        return [self.kind_of.get(value, {"kind": "saved", "value": value}) for value in writer.used]


def _backend(target: Target) -> dict[str, Any]:
    return {
        "name": "inductor",
        "stages": list(target.stages),
        "deepspeed": DEEPSPEED,
        "torch": torch.__version__.partition("+")[0],
        "triton": version_of("triton"),
        "architecture": ARCHITECTURE,
        "multiprocessors": PROPERTIES["multi_processor_count"],
        "settings": target.settings,
    }
