"""Named architectures: their public configurations, so that recording downloads nothing.

Each entry repeats the keys of the `config.json` that its publisher ships; keys that do not shape the
training graph (token ids, generation settings) are left out, and dropout is 0. `parameters` is the published count, and
building the model must reproduce it (tests/recorder/test_architectures.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dcrecord.errors import RecorderError, did_you_mean


@dataclass(frozen=True)
class Architecture:
    """A model of transformers, and what is recorded when nothing else is asked.

    parameters   the published count; None for a file
    config       what a config.json holds
    sequence     None for a model without one
    path         of the file that the configuration is from; None for one of the package
    """

    name: str
    parameters: int | None
    config: Mapping[str, Any]
    batch: int = 1
    sequence: int | None = 4096
    dtype: str = "bfloat16"
    attention: str = "auto"
    path: str | None = None

    @property
    def source(self) -> str:
        return self.path or self.name


@dataclass(frozen=True)
class LinearStack:
    """`depth` bias-free square layers of `width`, the MLP of DeepSpeed's PR #7992.

    A row is one vector of `width` elements; the unit of `--batch` and of `tokens` is the row.
    """

    depth: int
    width: int
    batch: int = 2048
    sequence: int = 1
    dtype: str = "bfloat16"
    attention: str = "auto"

    @property
    def name(self) -> str:
        return f"mlp-{self.depth}x{self.width}"

    @property
    def parameters(self) -> int:
        return self.depth * self.width * self.width


def _rope(theta: float, **scaling: Any) -> dict[str, Any]:
    """Rotary embedding parameters; `scaling` names a stretched variant, else the plain one is meant."""
    return {"rope_type": "default", "rope_theta": theta, **scaling}


_LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
_LLAMA_3 = {
    **_LLAMA,
    "vocab_size": 128256,
    "rms_norm_eps": 1e-5,
    "rope_parameters": _rope(500000.0),
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}
_LLAMA_3_2 = {
    **_LLAMA_3,
    "head_dim": 64,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "rope_parameters": _rope(
        500000.0,
        rope_type="llama3",
        factor=32.0,
        high_freq_factor=4.0,
        low_freq_factor=1.0,
        original_max_position_embeddings=8192,
    ),
}
_QWEN_3 = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 151936,
    "rms_norm_eps": 1e-6,
    "rope_parameters": _rope(1000000.0),
    "max_position_embeddings": 40960,
    "head_dim": 128,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
}
_GPT_2 = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 50257,
    "n_positions": 1024,
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
    "attn_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "resid_pdrop": 0.0,
}


def _sizes(
    shared: Mapping[str, Any], hidden: int, intermediate: int, layers: int, heads: int, **more: Any
) -> dict[str, Any]:
    """Configuration of a Llama-like transformer, in the keys that transformers uses."""
    return {
        **shared,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        **more,
    }


def _gpt2(width: int, layers: int, heads: int) -> dict[str, Any]:
    return {**_GPT_2, "n_embd": width, "n_layer": layers, "n_head": heads}


# The smallest one, for tests: no parameter has a number of elements that 3 or 4 divides, and only those of the query, key
# and value projections have an even one (rotary embeddings want heads of even width). So shards need padding.
_TINY_LLAMA = _sizes(
    {**_LLAMA, "rms_norm_eps": 1e-5, "rope_parameters": _rope(10000.0), "tie_word_embeddings": False},
    hidden=35,
    intermediate=53,
    layers=3,
    heads=5,
    num_key_value_heads=1,
    head_dim=10,
    vocab_size=97,
    max_position_embeddings=64,
)

_MISTRAL_7B_V03 = _sizes(
    {
        "model_type": "mistral",
        "architectures": ["MistralForCausalLM"],
        "vocab_size": 32768,
        "rms_norm_eps": 1e-5,
        "rope_parameters": _rope(1000000.0),
    },
    hidden=4096,
    intermediate=14336,
    layers=32,
    heads=32,
    num_key_value_heads=8,
    head_dim=128,
    max_position_embeddings=32768,
    sliding_window=None,
    tie_word_embeddings=False,
)

ARCHITECTURES: dict[str, Architecture] = {
    entry.name: entry
    for entry in (
        Architecture(
            "tiny-llama", 36_330, _TINY_LLAMA, batch=2, sequence=16, dtype="float32", attention="math"
        ),
        Architecture(
            "llama-3.2-1b",
            1_235_814_400,
            _sizes(_LLAMA_3_2, 2048, 8192, 16, 32, num_key_value_heads=8),
            batch=4,
            sequence=2048,
        ),
        Architecture(
            "llama-3.2-3b",
            3_212_749_824,
            {**_sizes(_LLAMA_3_2, 3072, 8192, 28, 24, num_key_value_heads=8), "head_dim": 128},
            sequence=2048,
        ),
        Architecture(
            "llama-3-8b", 8_030_261_248, _sizes(_LLAMA_3, 4096, 14336, 32, 32, num_key_value_heads=8), sequence=512
        ),
        Architecture(
            "llama-3-70b", 70_553_706_496, _sizes(_LLAMA_3, 8192, 28672, 80, 64, num_key_value_heads=8)
        ),
        Architecture("qwen3-0.6b", 596_049_920, _sizes(_QWEN_3, 1024, 3072, 28, 16, tie_word_embeddings=True)),
        Architecture("qwen3-1.7b", 1_720_574_976, _sizes(_QWEN_3, 2048, 6144, 28, 16, tie_word_embeddings=True)),
        Architecture("qwen3-4b", 4_022_468_096, _sizes(_QWEN_3, 2560, 9728, 36, 32, tie_word_embeddings=True)),
        Architecture("qwen3-8b", 8_190_735_360, _sizes(_QWEN_3, 4096, 12288, 36, 32)),
        Architecture("qwen3-14b", 14_768_307_200, _sizes(_QWEN_3, 5120, 17408, 40, 40)),
        Architecture("qwen3-32b", 32_762_123_264, _sizes(_QWEN_3, 5120, 25600, 64, 64)),
        Architecture("mistral-7b", 7_248_023_552, _MISTRAL_7B_V03),
        Architecture("gpt2", 124_439_808, _gpt2(768, 12, 12), batch=4, sequence=1024),
        Architecture("gpt2-xl", 1_557_611_200, _gpt2(1600, 48, 25), batch=1, sequence=1024),
    )
}


def find_architecture(name: str) -> Architecture | LinearStack:
    """The architecture called `name`; `mlp-DEPTHxWIDTH` stands for any depth and width."""
    if name in ARCHITECTURES:
        return ARCHITECTURES[name]
    stack = re.fullmatch(r"mlp-([1-9]\d*)x([1-9]\d*)", name)
    if stack:
        return LinearStack(depth=int(stack[1]), width=int(stack[2]))
    known = [*ARCHITECTURES, "mlp-8x4096"]
    raise RecorderError(
        f"unknown model '{name}'{did_you_mean(name, known)}: expected one of {', '.join(known)} "
        "(any mlp-DEPTHxWIDTH), or file.py:function"
    )
