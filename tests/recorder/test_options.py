"""Each option of a recording changes what it should, and nothing else."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from bare_modules import Images
from conftest import PLAIN, operators, record_module
from dcrecord.architectures import ARCHITECTURES, LinearStack
from dcrecord.errors import RecorderError
from dcrecord.model_workloads import model_workload
from dcrecord.options import Options, Reporter
from dcrecord.recording import record
from torch import nn
from torch.nn import functional

HALF = Options(batch=None, sequence=None, dtype="bfloat16", attention="flash")


class Blocks(nn.Module):
    """Two equal blocks of norm, layer, GELU, layer, with a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) for _ in range(2)
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            rows = rows + block(rows)
        return rows.square().mean()


ROWS = torch.zeros(6, 8)


def recomputed(document: dict[str, Any]) -> Counter[tuple[str, str]]:
    """How often each operator is repeated in the backward, by the module that made it."""
    names = [schema.partition("(")[0].removeprefix("aten::") for schema in document["schemas"]]
    ops = [op for op in document["graphs"][1]["ops"] if op.get("recompute")]
    return Counter((names[op["schema"]], document["modules"][op["module"]]) for op in ops)


def test_default_partitioner_recomputes_nothing() -> None:
    assert recomputed(record_module(Blocks, ROWS, partitioner="default")) == {}


def test_mincut_recomputes_aliases_of_parameters() -> None:
    """The backward of a linear layer transposes its weight: each of the four weights once more, and never saved."""
    document = record_module(Blocks, ROWS)
    transposed = {module for name, module in recomputed(document) if name == "t"}
    assert transposed == {"blocks.0.1", "blocks.0.3", "blocks.1.1", "blocks.1.3"}
    parameters = {document["values"][entry["value"]]["storage"] for entry in document["params"]}
    saved = [output["value"] for output in document["graphs"][0]["outputs"] if output["kind"] == "saved"]
    assert not parameters & {document["values"][value]["storage"] for value in saved}


def test_checkpointed_blocks_repeat_their_forward() -> None:
    """Norm, GELU and first layer of each block are repeated; the last layer's result is not needed again."""
    repeated = recomputed(record_module(Blocks, ROWS, activation_checkpointing=True))
    for block in ("blocks.0", "blocks.1"):
        assert repeated["native_layer_norm", f"{block}.0"] == 1
        assert repeated["addmm", f"{block}.1"] == 1
        assert repeated["gelu", f"{block}.2"] == 1
        assert repeated["addmm", f"{block}.3"] == 0


def test_checkpointed_blocks_save_their_inputs_only() -> None:
    """Saved: the second block's input and the last sum [6, 8]; the first block's input is the step's."""
    document = record_module(Blocks, ROWS, activation_checkpointing=True)
    saved = [output["value"] for output in document["graphs"][0]["outputs"] if output["kind"] == "saved"]
    assert sorted(document["values"][value]["shape"] for value in saved) == [[6, 8], [6, 8]]


def test_pattern_checkpoints_the_modules_that_match() -> None:
    repeated = recomputed(record_module(Blocks, ROWS, checkpoint=("blocks.1",)))
    assert repeated["addmm", "blocks.0.1"] == 0 and repeated["addmm", "blocks.1.1"] == 1


def test_module_inside_a_checkpointed_one_is_not_checkpointed_again() -> None:
    assert record_module(Blocks, ROWS, checkpoint=("blocks.*",)) | {"options": 0} == record_module(
        Blocks, ROWS, activation_checkpointing=True
    ) | {"options": 0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"checkpoint": ("block.0",)}, r"--checkpoint 'block.0' matches no module \(did you mean 'blocks.0'\?\)"),
        ({"checkpoint": ("blocks",)}, r"'blocks' is a ModuleList, which is never called; expected 'blocks\.\*'"),
        ({"frozen": ("blocks.0.1.wight",)}, r"matches no parameter \(did you mean 'blocks.0.1.weight'\?\)"),
        ({"hold": ("logits",)}, "--hold logits: the module returns no output of that name"),
    ],
)
def test_wrong_name_is_answered_with_the_nearest(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(RecorderError, match=message):
        record_module(Blocks, ROWS, **changed)


def test_checkpointing_without_repeated_blocks_asks_for_a_pattern() -> None:
    with pytest.raises(RecorderError, match="expected --checkpoint PATTERN"):
        record_module(lambda: nn.Linear(8, 8), ROWS, activation_checkpointing=True)


def _tiny_llama(options: Options) -> dict[str, Any]:
    return record(model_workload(ARCHITECTURES["tiny-llama"], options), options, Reporter())


def test_transformers_checkpoints_its_decoder_layers() -> None:
    """A layer has 7 matrix products. The result of the last of them is the next layer's input, which is saved.

    After the last layer nothing is checkpointed, so the partitioner does not know that it had better save its result.
    """
    repeated = recomputed(_tiny_llama(replace(PLAIN, activation_checkpointing=True)))
    needed = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj"}
    for layer, expected in ((0, needed), (1, needed), (2, needed | {"down_proj"})):
        made = {module.rpartition(".")[2] for name, module in repeated if name == "mm" and f"layers.{layer}." in module}
        assert made == expected


def test_frozen_parameters_have_no_gradient_and_are_marked() -> None:
    document = record_module(Blocks, ROWS, frozen=("blocks.0.*",))
    marks = {entry["name"]: entry["requires_grad"] for entry in document["params"]}
    assert marks == {name: not name.startswith("blocks.0.") for name in marks}
    trained = {document["params"][output["param"]]["name"] for output in document["graphs"][1]["outputs"]}
    assert trained == {name for name in marks if marks[name]}


def test_backward_stops_where_everything_before_is_frozen() -> None:
    """The second block's input needs no gradient, so nothing is derived with respect to it."""
    whole = operators(record_module(Blocks, ROWS), "backward").count("aten::native_layer_norm_backward")
    half = operators(record_module(Blocks, ROWS, frozen=("blocks.0.*",)), "backward").count(
        "aten::native_layer_norm_backward"
    )
    assert (whole, half) == (2, 1)


def test_held_outputs_are_those_asked_for() -> None:
    for hold, expected in ((None, ["scores"]), (("scores",), ["scores"]), ((), [])):
        document = record_module(Images, torch.zeros(2, 3, 12, 12), hold=hold)
        names = [output["name"] for output in document["graphs"][0]["outputs"] if output["kind"] == "output"]
        assert names == expected


class Mixed(nn.Module):
    """Two layers, whose products autocast does in half precision, and a layer norm, which it does in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8, bias=False)
        self.second = nn.Linear(8, 8, bias=False)
        self.norm = nn.LayerNorm(8)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.norm(self.second(self.first(rows))).mean()


def test_autocast_casts_parameters_in_the_graph_and_again_in_the_backward() -> None:
    document = record_module(Mixed, ROWS, autocast="bfloat16")
    weight = next(entry["value"] for entry in document["params"] if entry["name"] == "second.weight")
    assert document["values"][weight]["dtype"] == "float32"
    for graph in document["graphs"]:
        casts = [op for op in graph["ops"] if op["args"][0] == {"v": weight}]
        assert [document["values"][op["outputs"][0]]["dtype"] for op in casts] == ["bfloat16"]


def test_autocast_normalises_in_float32_and_multiplies_in_half_precision() -> None:
    document = record_module(Mixed, ROWS, autocast="bfloat16")
    names, values = operators(document, "forward"), document["values"]
    dtype_of = {
        name: values[op["args"][0]["v"]]["dtype"] for name, op in zip(names, document["graphs"][0]["ops"])
    }
    assert (dtype_of["aten::mm"], dtype_of["aten::native_layer_norm"]) == ("bfloat16", "float32")


def test_autocast_gradients_are_float32_like_their_parameters() -> None:
    document = record_module(Mixed, ROWS, autocast="bfloat16")
    values = document["values"]
    assert {values[output["value"]]["dtype"] for output in document["graphs"][1]["outputs"]} == {"float32"}


class Attention(nn.Module):
    """Grouped attention: four query heads, two key heads of 16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(128, 128)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        query, key, value = self.layer(rows).view(2, 32, 8, 16).transpose(1, 2).split([4, 2, 2], dim=1)
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True).float().mean()


@pytest.mark.parametrize("kernel", ["flash", "cudnn"])
def test_attention_kernel_is_the_one_asked_for(kernel: str) -> None:
    document = record_module(Attention, torch.zeros(2, 32, 128, dtype=torch.bfloat16), options=HALF, attention=kernel)
    assert f"aten::_scaled_dot_product_{kernel}_attention" in operators(document, "forward")
    assert f"aten::_scaled_dot_product_{kernel}_attention_backward" in operators(document, "backward")


class SeveralAttentions(nn.Module):
    """Causal attention, with a mask, with one that is trained, and grouped: PyTorch takes a different kernel for each."""

    def __init__(self, calls: tuple[str, ...] = ("causal", "masked", "trained", "grouped")) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 64)
        self.bias = nn.Parameter(torch.zeros(32, 32))
        self.calls = calls

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        heads = self.layer(rows).view(2, 32, 4, 16).transpose(1, 2)
        mask = torch.zeros(32, 32, dtype=heads.dtype)
        attend = functional.scaled_dot_product_attention
        results = {
            "causal": lambda: attend(heads, heads, heads, is_causal=True),
            "masked": lambda: attend(heads, heads, heads, attn_mask=mask),
            "trained": lambda: attend(heads, heads, heads, attn_mask=self.bias),
            "grouped": lambda: attend(heads, heads[:, :2], heads[:, :2], attn_mask=self.bias, enable_gqa=True),
        }
        return sum((results[call]() for call in self.calls), start=torch.zeros(())).float().mean()


@pytest.mark.parametrize(("order", "causal"), [("auto", "cudnn"), ("auto-without-cudnn", "flash")])
def test_automatic_orders_take_the_first_kernel_that_takes_the_call(order: str, causal: str) -> None:
    document = record_module(SeveralAttentions, torch.zeros(2, 32, 64, dtype=torch.bfloat16), options=HALF, attention=order)
    names = operators(document, "forward")
    assert f"aten::_scaled_dot_product_{causal}_attention" in names
    assert "aten::_scaled_dot_product_efficient_attention" in names
    assert "aten::_safe_softmax" in names
    assert document["options"]["attention"] == order


@pytest.mark.parametrize(
    ("call", "kernel"), [("causal", "cudnn"), ("masked", "cudnn"), ("trained", "efficient"), ("grouped", "math")]
)
def test_one_kernel_of_auto_is_named(call: str, kernel: str) -> None:
    rows = torch.zeros(2, 32, 64, dtype=torch.bfloat16)
    document = record_module(lambda: SeveralAttentions((call,)), rows, options=HALF, attention="auto")
    assert document["options"]["attention"] == kernel


def test_refused_kernel_names_the_one_that_auto_takes() -> None:
    rows = torch.zeros(2, 32, 64, dtype=torch.bfloat16)
    with pytest.raises(RecorderError, match="takes no attention mask: expected --attention auto, which takes the cudnn"):
        record_module(lambda: SeveralAttentions(("masked",)), rows, options=HALF, attention="flash")


LOGGER = logging.getLogger(__name__)


def test_messages_of_a_module_are_left_out() -> None:

    class Talking(Blocks):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            LOGGER.warning("%d rows", rows.shape[0])
            return super().forward(rows)

    assert operators(record_module(Talking, ROWS), "forward") == operators(record_module(Blocks, ROWS), "forward")


def test_math_attention_is_written_out() -> None:
    names = operators(record_module(Attention, torch.zeros(2, 32, 128), attention="math"), "forward")
    assert "aten::_safe_softmax" in names and not any("scaled_dot_product" in name for name in names)


def test_permuted_mask_is_refused_by_the_efficient_kernel() -> None:
    """As T5's learned bias: [queries, keys, heads] in memory."""

    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(16, 16, 2))

        def forward(self, heads: torch.Tensor) -> torch.Tensor:
            mask = self.bias.permute(2, 0, 1)[None]
            return functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask).float().mean()

    with pytest.raises(RecorderError, match="efficient attention kernel takes no mask whose last dimension is not"):
        record_module(Biased, torch.zeros(1, 2, 16, 32), attention="efficient")


def test_encoder_without_padding_has_no_mask() -> None:
    """Transformers builds one when it is traced, which flash attention would refuse."""
    transformers = pytest.importorskip("transformers")

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            config = transformers.BertConfig(
                hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48, vocab_size=50,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            )
            self.model = transformers.BertModel._from_config(config, attn_implementation="sdpa")

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=words).last_hidden_state.float().mean()

    document = record_module(Encoder, torch.zeros(2, 8, dtype=torch.int64), options=HALF, attention="flash")
    assert "aten::_scaled_dot_product_flash_attention" in operators(document, "forward")


def test_grouped_key_heads_are_refused_by_the_efficient_kernel() -> None:
    with pytest.raises(RecorderError, match="efficient attention kernel takes as many key heads as query heads"):
        record_module(Attention, torch.zeros(2, 32, 128), attention="efficient")


def test_dtype_is_that_of_parameters_and_gradients() -> None:
    document = record_module(Blocks, ROWS.to(torch.bfloat16), dtype="bfloat16")
    values = document["values"]
    ids = [entry["value"] for entry in document["params"]] + [output["value"] for output in document["graphs"][1]["outputs"]]
    assert {values[value]["dtype"] for value in ids} == {"bfloat16"}


def test_batch_and_sequence_scale_the_tokens() -> None:
    document = _tiny_llama(replace(PLAIN, batch=3, sequence=5))
    assert document["tokens"] == 15
    assert document["values"][document["inputs"][0]["value"]]["shape"] == [3, 5]


def test_linear_stack_is_bias_free_layers_only() -> None:
    """Each layer: t and mm forward; the gradient of a weight is one mm, that of its input another, but for the first."""
    stack = LinearStack(depth=3, width=16, batch=4)
    document = record(model_workload(stack, HALF), HALF, Reporter())
    assert [entry["name"] for entry in document["params"]] == ["0.weight", "1.weight", "2.weight"]
    assert operators(document, "forward").count("aten::mm") == 3
    assert operators(document, "backward").count("aten::mm") == 5
