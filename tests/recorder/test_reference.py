"""The reference training is PyTorch's training of the same module, and its numbers are those that docs/reference/formats.md defines."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import PLAIN, ROOT, record_module
from dcrecord.architectures import ARCHITECTURES, LinearStack
from dcrecord.building import build_with_weights
from dcrecord.command_line import main
from dcrecord.fingerprint import fingerprint, relative_error
from dcrecord.graph_file import graph_hash, read_document, read_text
from dcrecord.model_workloads import model_workload
from dcrecord.options import Reporter
from dcrecord.outputs import split_loss
from dcrecord.recording import record
from dcrecord.reference_training import AdamW, ReferenceTraining, Settings, seeded_input, seeded_parameter
from dcrecord.seeded import WEIGHT_SCALE, fnv1a, fnv1a_of_bytes, splitmix64, uniform
from dcrecord.workload import Workload
from jsonschema_rs import Draft202012Validator
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

TINY_LLAMA = ROOT / "traces" / "tiny-llama"
CPU = torch.device("cpu")
STACK = LinearStack(depth=3, width=24, batch=7, dtype="float32")


class EagerTraining:
    """The same training without a recording: the module, autograd and torch.optim.AdamW."""

    def __init__(self, workload: Workload, document: dict[str, Any], settings: Settings) -> None:
        self.workload = workload
        self.document = document
        self.settings = settings
        self.parameters = dict(workload.body.named_parameters())
        for entry in document["params"]:
            data = seeded_parameter(entry, document["values"][entry["value"]], settings.seed)
            self.parameters[entry["name"]].data.copy_(data)
        constants = settings.optimizer
        betas = (constants.beta1, constants.beta2)
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), constants.lr, betas, constants.eps, constants.weight_decay, foreach=False
        )

    def run(self, step: int) -> tuple[float, dict[str, torch.Tensor]]:
        """Mean loss and averaged gradients of a step; updates the parameters."""
        losses = []
        for rank in range(self.settings.ranks):
            for micro_step in range(self.settings.accumulation):
                loss = self._loss(f"{rank}/{step}/{micro_step}")
                (loss / self.settings.accumulation).backward()
                losses.append(loss.item())
        for parameter in self.parameters.values():
            parameter.grad /= self.settings.ranks
        gradients = {name: parameter.grad.clone() for name, parameter in self.parameters.items()}
        self.optimizer.step()
        self.optimizer.zero_grad()
        return sum(losses) / len(losses), gradients

    def _loss(self, place: str) -> torch.Tensor:
        (entry,) = self.document["inputs"]
        data = seeded_input(entry, self.document["values"][entry["value"]], place, self.settings.seed)
        with sdpa_kernel(SDPBackend.MATH):
            return split_loss(self.workload.call(self.workload.body, data))[0]


def _recorded(architecture: Any) -> dict[str, Any]:
    if architecture.name == "tiny-llama":
        return read_document(TINY_LLAMA / "graph.json.xz")
    return record(model_workload(architecture, PLAIN), PLAIN, Reporter())


# Both run the same float32 kernels on the same numbers; only the order of a few sums differs. 32 roundings of 2^-24, of which
# a gradient that passes through three layers and an optimizer step meets fewer, are 1.9e-6.
GRADIENT_TOLERANCE = 32 * 2.0**-24
# The stack's loss is a mean near 0 of terms that cancel; 16 roundings.
LOSS_TOLERANCE = 16 * 2.0**-24


@pytest.mark.parametrize(("accumulation", "ranks"), [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("architecture", [ARCHITECTURES["tiny-llama"], STACK], ids=lambda one: one.name)
def test_three_steps_equal_eager_training(architecture: Any, accumulation: int, ranks: int) -> None:
    document = _recorded(architecture)
    settings = Settings(steps=3, accumulation=accumulation, ranks=ranks, seed=5)
    eager = EagerTraining(model_workload(architecture, PLAIN, build_with_weights), document, settings)
    training = ReferenceTraining(document, settings, CPU)
    for number in range(settings.steps):
        step = training.run(number)
        loss, gradients = eager.run(number)
        assert math.isclose(step.loss, loss, rel_tol=LOSS_TOLERANCE)
        assert [document["params"][param]["name"] for param in step.gradients] == list(gradients)
        for param, expected in zip(step.gradients, gradients.values()):
            assert (step.gradients[param] - expected).norm() <= GRADIENT_TOLERANCE * expected.norm()


def test_losses_are_listed_by_rank_and_micro_step() -> None:
    document = _recorded(STACK)
    step = ReferenceTraining(document, Settings(accumulation=3, ranks=2), CPU).run(0)
    assert [len(of_rank) for of_rank in step.losses] == [3, 3]
    assert len({loss for of_rank in step.losses for loss in of_rank}) == 6
    assert step.loss == pytest.approx(np.mean(step.losses), rel=1e-12)


def test_first_optimizer_step_is_that_of_adamw() -> None:
    """Both moments' corrections cancel at the first step: w * (1 - lr * decay) - lr * g / (|g| + eps)."""
    document = _recorded(STACK)
    training = ReferenceTraining(document, Settings(optimizer=AdamW(lr=0.01, weight_decay=0.5)), CPU)
    before = training.masters[0].clone()
    gradient = training.run(0).gradients[0]
    expected = before * (1 - 0.01 * 0.5) - 0.01 * gradient / (gradient.abs() + 1e-8)
    torch.testing.assert_close(training.masters[0], expected, rtol=0, atol=1e-7)
    assert torch.equal(training.parameters[document["params"][0]["value"]], training.masters[0])


def test_frozen_parameters_stay() -> None:
    document = record_module(lambda: nn.Linear(4, 3), torch.zeros(2, 4), frozen=("weight",))
    training = ReferenceTraining(document, Settings(), CPU)
    before = {value: tensor.clone() for value, tensor in training.parameters.items()}
    training.run(0)
    weight, bias = (entry["value"] for entry in document["params"])
    assert torch.equal(training.parameters[weight], before[weight])
    assert not torch.equal(training.parameters[bias], before[bias])


def test_hash_of_a_name_is_fnv1a() -> None:
    """Test vectors of the FNV authors' list."""
    assert [fnv1a(""), fnv1a("a"), fnv1a("foobar")] == [0xCBF29CE484222325, 0xAF63DC4C8601EC8C, 0x85944171F73967E8]


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000, 2**15 - 1, 2**15, 2**15 + 1, 70_001])
def test_hash_of_many_bytes_is_that_of_the_loop_over_them(count: int) -> None:
    data = np.random.default_rng(count).integers(0, 256, count, dtype=np.uint8)
    state = 0xCBF29CE484222325
    for byte in data.tolist():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    assert fnv1a_of_bytes(data) == state


def test_random_words_are_splitmix64() -> None:
    """Published outputs of the generator with seed 1234567, and the same by index."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert splitmix64(1234567, 0, 5).tolist() == published
    assert splitmix64(1234567, 3, 2).tolist() == published[3:]


def test_uniform_numbers_take_the_upper_24_bits() -> None:
    """0 gives -scale; 2^24 - 1 steps of 2^-23 give scale * (1 - 2^-23); half way gives 0."""
    words = np.array([0, 2**40 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert uniform(words, np.float32(2.0)).tolist() == [-2.0, -2.0, 0.0, 2.0 - 2.0**-22]


def test_weights_are_ones_zeros_and_seeded_numbers_by_name() -> None:
    def made(name: str, *shape: int) -> torch.Tensor:
        return seeded_parameter({"name": name}, {"shape": list(shape), "dtype": "float32"}, seed=3)

    assert made("norm.weight", 3).tolist() == [1.0, 1.0, 1.0]
    assert made("layer.bias", 2).tolist() == [0.0, 0.0]
    first = (2 * (int(splitmix64(3 ^ fnv1a("layer.weight"), 0, 1)[0]) >> 40) / 2**24 - 1) * float(WEIGHT_SCALE)
    assert float(made("layer.weight", 40, 50)[0, 0]) == np.float32(first)
    assert float(made("layer.weight", 40, 50).std()) == pytest.approx(0.02, rel=0.05)


def test_tokens_are_words_modulo_the_vocabulary() -> None:
    entry, value = {"name": "ids", "fill": {"kind": "tokens", "vocabulary": 97}}, {"shape": [2, 3], "dtype": "int64"}
    words = splitmix64(7 ^ fnv1a("1/2/3"), 0, 6).tolist()
    assert seeded_input(entry, value, "1/2/3", seed=7).flatten().tolist() == [word % 97 for word in words]


def test_projections_take_their_signs_from_the_bits_of_the_words() -> None:
    elements = np.array([0.5, -2.0, 3.25], dtype=np.float32)
    words = splitmix64(9 ^ fnv1a("projections/w"), 0, 3).tolist()
    made = fingerprint(elements, "w", seed=9)
    for k in range(16):
        signs = [-1.0 if word >> k & 1 else 1.0 for word in words]
        assert made.projections[k] == sum(sign * element for sign, element in zip(signs, elements.tolist()))
    assert made.norm == math.sqrt(0.25 + 4.0 + 10.5625)
    assert made.to_json()["hash"] == f"{fnv1a_of_bytes(np.frombuffer(elements.tobytes(), dtype=np.uint8)):016x}"


def test_projections_do_not_depend_on_blocks() -> None:
    """Blocks have 2^12 elements. The sum over 2^16 + 5 ones is the sum of the signs, a whole number, however it is split."""
    count = 2**16 + 5
    bits = (splitmix64(fnv1a("projections/w"), 0, count) >> np.uint64(15)) & np.uint64(1)
    assert fingerprint(np.ones(count, dtype=np.float32), "w", seed=0).projections[15] == count - 2 * int(bits.sum())


def test_relative_error_is_estimated_from_the_projections() -> None:
    """16 projections estimate a square to sqrt(2 / 16) = 35 %, so its root to 18 %; three deviations are 53 %."""
    random = np.random.default_rng(0)
    gradient = random.standard_normal(10_000).astype(np.float32)
    other = gradient + 0.01 * random.standard_normal(10_000).astype(np.float32)
    estimate = relative_error(fingerprint(gradient, "w", 0), fingerprint(other, "w", 0))
    exact = float(np.linalg.norm(gradient - other) / np.linalg.norm(gradient))
    assert estimate == pytest.approx(exact, rel=0.53)


def test_same_command_gives_the_same_bytes(tmp_path: Path) -> None:
    words = ["reference", str(TINY_LLAMA), "--steps", "2", "--ranks", "2", "-o"]
    assert main([*words, str(tmp_path / "one.json")]) == main([*words, str(tmp_path / "two.json")]) == 0
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_committed_reference_is_what_this_machine_computes(tmp_path: Path) -> None:
    """Hashes hold for one kind of CPU; losses and gradients agree to rounding on all, through five optimizer steps."""
    committed = read_document(TINY_LLAMA / "reference.json")
    assert main(["reference", str(TINY_LLAMA), "-o", str(tmp_path / "made.json")]) == 0
    made = read_document(tmp_path / "made.json")
    assert {**made, "steps": 0} == {**committed, "steps": 0}
    for ours, theirs in zip(made["steps"], committed["steps"], strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
        for one, other in zip(ours["gradients"], theirs["gradients"], strict=True):
            assert (one["param"], one["name"]) == (other["param"], other["name"])
            assert one["norm"] == pytest.approx(other["norm"], rel=1e-4)
            assert one["projections"] == pytest.approx(other["projections"], abs=1e-3 * one["norm"])


def test_reference_names_its_graph_by_its_hash() -> None:
    text = read_text(TINY_LLAMA / "graph.json.xz")
    committed = read_document(TINY_LLAMA / "reference.json")
    assert committed["graph"] == graph_hash(text)


def test_untrained_loss_is_that_of_guessing() -> None:
    """Small weights say nothing: the first loss is near ln(97) = 4.5747."""
    assert read_document(TINY_LLAMA / "reference.json")["steps"][0]["loss"] == pytest.approx(math.log(97), abs=0.02)


def test_committed_reference_fits_the_json_schema() -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "schemas" / "reference.schema.json").read_text())
    Draft202012Validator(schema).validate(read_document(TINY_LLAMA / "reference.json"))


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("traces/tiny-lama", 2, "'traces/tiny-lama' is no folder and no file (did you mean 'tiny-llama'?)"),
        ("docs", 2, "'docs' has no graph.json.xz"),
        ("traces/tiny-llama --rank 2", 2, "unknown option '--rank' (did you mean '--ranks'?)"),
        ("traces/tiny-llama --steps 0", 2, "--steps: '0' given, expected a whole number of at least 1"),
        ("traces/tiny-llama --device gpu", 2, "--device: 'gpu' given, expected one of cpu, cuda"),
        ("docs/reference/schemas/graph.schema.json", 2, "has format None: expected 'dc-graph/1'"),
        ("tests/recorder/conftest.py", 2, "is no JSON file: expected a graph file"),
        ("", 2, "missing WORKLOAD"),
    ],
)
def test_bad_input_is_one_sentence(words: str, code: int, sentence: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["reference", *words.split()]) == code
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and sentence in printed


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_missing_gpu_is_a_failure_of_the_machine(capsys: Any) -> None:
    assert main(["reference", str(TINY_LLAMA), "--device", "cuda"]) == 3
    assert "no CUDA GPU here" in capsys.readouterr().err


def test_loss_that_is_not_finite_is_refused(tmp_path: Path, capsys: Any) -> None:
    document = record_module(lambda: Overflow(), torch.zeros(2, 4))
    (tmp_path / "graph.json").write_text(json.dumps({**document, "name": "overflow"}))
    assert main(["reference", str(tmp_path)]) == 2
    assert "step 0: the loss is not finite" in capsys.readouterr().err


class Overflow(nn.Module):
    """Its loss is beyond float32."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return ((self.layer(rows).square() + 1e30) * 1e30).mean()
