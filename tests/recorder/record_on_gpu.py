"""Records the cases of gpu_cases.py on a GPU, with CUDA tensors and PyTorch's own dispatch.

  PYTHONPATH=tools/dcrecord/src python3 tests/recorder/record_on_gpu.py --out DIR [--only NAME ...]

Nothing is replaced here: parameters and inputs are real CUDA tensors, and the attention kernel is chosen by
torch.nn.attention.sdpa_kernel. For each case DIR gets NAME.json.xz with the recording's summary. DIR/report.txt (and
stdout) says two more things: whether the operators, when run on the GPU, return tensors of the recorded dtype, shape,
strides, offset, storage size and aliasing; and whether the recorded graph computes the loss and the gradients that the
module itself computes, and leaves the same in its buffers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from pathlib import Path
from typing import IO, Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(Path(__file__).resolve().parent))

from dcrecord.building import build_with_weights  # noqa: E402
from dcrecord.capture import capture  # noqa: E402
from dcrecord.graph_file import to_bytes  # noqa: E402
from dcrecord.interpret import Interpreter, values_read  # noqa: E402
from dcrecord.options import Options  # noqa: E402
from dcrecord.recording import contents_of, describe, prepare, training_step  # noqa: E402
from dcrecord.transformers_attention import plain_attention  # noqa: E402
from dcrecord.workload import Workload  # noqa: E402
from gpu_cases import Case, cases  # noqa: E402
from summary import summary  # noqa: E402

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
DEVICE = torch.device("cuda", 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the summaries")
    parser.add_argument("--only", nargs="*", help="names of cases; all when left out")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA GPU here: expected one", file=sys.stderr)
        return 3
    arguments.out.mkdir(parents=True, exist_ok=True)
    chosen = [case for case in cases() if not arguments.only or case.name in arguments.only]
    with open(arguments.out / "report.txt", "w", encoding="utf-8") as report:
        failed = [case.name for case in chosen if not run_case(case, arguments.out, report)]
        say(f"{len(chosen) - len(failed)} of {len(chosen)} cases recorded; failed: {failed}", report)
    return 0


def say(line: str, report: IO[str]) -> None:
    for stream in (sys.stdout, report):
        print(line, file=stream, flush=True)


def run_case(case: Case, out: Path, report: IO[str]) -> bool:
    """Records and checks one case; a failure is reported and the next case goes on."""
    start = time.monotonic()
    try:
        result = record_case(case)
    except Exception:
        say(f"FAILED {case.name}\n{traceback.format_exc(limit=-8)}", report)
        return False
    (out / f"{case.name}.json.xz").write_bytes(to_bytes(result, compressed=True))
    say(f"{case.name}: {len(result['lines'])} lines, {time.monotonic() - start:.1f} s; {result['check']}", report)
    return True


def record_case(case: Case) -> dict[str, Any]:
    """Summary of the recording, and what running it showed."""
    torch.manual_seed(0)
    options = case.options
    workload = case.build(options, build_with_weights)
    prepare(workload.body, options)
    workload.body.to(DEVICE)
    contents = contents_of(workload)
    inputs = [example_input(workload, name) for name in workload.inputs]
    step = training_step(workload, options, device_type="cuda")
    with plain_attention(workload.body, options.attention), sdpa_kernel(BACKENDS[options.attention]):
        captured = capture(step, inputs, options.partitioner)
        document = describe(captured, contents, workload, options)
        document = json.loads(json.dumps(document))
        check = run_and_compare(document, workload, inputs, options)
    versions = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0)}
    return {"case": case.name, "versions": versions, "lines": summary(document), "check": check}


def example_input(workload: Workload, name: str) -> torch.Tensor:
    example, fill = workload.inputs[name], workload.fills[name]
    if fill.vocabulary is not None:
        return torch.randint(0, fill.vocabulary, example.shape, device=DEVICE)
    return torch.randn(example.shape, device=DEVICE).to(example.dtype)


def run_and_compare(document: dict[str, Any], workload: Workload, inputs: list[Any], options: Options) -> dict[str, Any]:
    """Runs the document's graphs on the GPU, and the module itself, from the same weights and inputs."""
    interpreter = Interpreter.of(document, DEVICE)
    parameters = dict(workload.body.named_parameters())
    given = {entry["value"]: parameters[entry["name"]].detach() for entry in document["params"]}
    buffers = interpreter.buffers()
    given |= buffers
    given |= {entry["value"]: tensor for entry, tensor in zip(document["inputs"], inputs)}
    forward, backward = document["graphs"]
    observed = Observed(document)
    given |= interpreter.run(forward, given, observed)
    loss = given[next(entry["value"] for entry in forward["outputs"] if entry["kind"] == "loss")]
    tangent = next(entry["value"] for entry in backward["inputs"] if entry["kind"] == "tangent")
    gradients = interpreter.run(backward, {**given, tangent: torch.ones_like(loss)}, observed)
    expected_loss = run_module(workload, inputs, options)
    errors = {}
    for entry in backward["outputs"]:
        name = document["params"][entry["param"]]["name"]
        expected = parameters[name].grad.float()
        errors[name] = float((gradients[entry["value"]].float() - expected).norm() / expected.norm().clamp(min=1e-30))
    left = dict(workload.body.named_buffers())
    otherwise = [entry["name"] for entry in document["buffers"] if left_otherwise(left.get(entry["name"]), buffers[entry["value"]])]
    with_gradient = {name for name, parameter in parameters.items() if parameter.grad is not None}
    return {
        "loss_difference": float(loss - expected_loss),
        "largest_gradient_error": max(errors.values()),
        "gradients_missing": sorted(with_gradient - set(errors)),
        "buffers_otherwise": sorted(otherwise),
        "mismatches": observed.mismatches[:20],
        "mismatch_count": len(observed.mismatches),
    }


def left_otherwise(by_module: torch.Tensor | None, by_graph: torch.Tensor) -> bool:
    """Whether the step left other contents in a buffer; a constant of the trace, which no module has, is as it was."""
    return by_module is not None and not torch.equal(by_module, by_graph)


def run_module(workload: Workload, inputs: list[Any], options: Options) -> torch.Tensor:
    """The loss of the module itself; leaves gradients in its parameters."""
    step = training_step(workload, options, device_type="cuda")
    loss = step(*inputs)["loss"]
    loss.backward()
    return loss.detach()


class Observed:
    """Compares what operators return on the GPU with what the document says of their outputs."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.mismatches: list[str] = []
        self.tensors: dict[int, torch.Tensor] = {}

    def __call__(self, op: dict[str, Any], results: list[Any]) -> None:
        name = self.document["schemas"][op["schema"]].partition("(")[0]
        for position, (value_id, result) in enumerate(zip(op["outputs"], results)):
            if value_id is None:
                continue
            value = self.document["values"][value_id]
            recorded = {
                "dtype": value["dtype"],
                "shape": value["shape"],
                "strides": value["strides"],
                "offset": value["offset"],
                "bytes": self.document["storages"][value["storage"]],
            }
            executed = {
                "dtype": str(result.dtype).removeprefix("torch."),
                "shape": list(result.shape),
                "strides": list(result.stride()),
                "offset": result.storage_offset(),
                "bytes": result.untyped_storage().nbytes(),
            }
            if recorded != executed or result.device != DEVICE:
                changed = {key: (recorded[key], executed[key]) for key in recorded if recorded[key] != executed[key]}
                self.mismatches.append(f"{name} output {position}: {changed} on {result.device}")
            self._compare_aliases(op, name, position, value, result)
            self.tensors[value_id] = result

    def _compare_aliases(self, op: Any, name: str, position: int, value: Any, result: torch.Tensor) -> None:
        for read in values_read(op):
            if read not in self.tensors or result.numel() == 0:
                continue
            recorded = self.document["values"][read]["storage"] == value["storage"]
            executed = self.tensors[read].untyped_storage()._cdata == result.untyped_storage()._cdata
            if recorded != executed:
                self.mismatches.append(f"{name} output {position}: shares storage with an input: {recorded}, {executed}")


if __name__ == "__main__":
    sys.exit(main())
