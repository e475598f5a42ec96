"""The named architectures are the published ones."""

from __future__ import annotations

import pytest
from dcrecord.architectures import ARCHITECTURES, find_architecture
from dcrecord.errors import RecorderError
from dcrecord.model_workloads import model_workload
from dcrecord.options import Options

# Parameters that the publishers' checkpoints hold, tied weights counted once.
PUBLISHED = {
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "mistral-7b": 7_248_023_552,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
}


def _parameters(name: str) -> int:
    architecture = find_architecture(name)
    options = Options(batch=1, sequence=16, dtype=architecture.dtype, attention=architecture.attention)
    return sum(parameter.numel() for parameter in model_workload(architecture, options).body.parameters())


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name: str) -> None:
    assert _parameters(name) == PUBLISHED[name] == find_architecture(name).parameters


def test_every_architecture_is_checked() -> None:
    assert set(ARCHITECTURES) == {*PUBLISHED, "tiny-llama"}


def test_tiny_llama_has_the_parameters_that_its_sizes_give() -> None:
    """Hidden 35, 5 query heads and 1 key head of 10, intermediate 53, 3 layers, vocabulary 97, nothing tied."""
    attention = 35 * 50 + 2 * 35 * 10 + 50 * 35
    layer = attention + 3 * 35 * 53 + 2 * 35
    assert _parameters("tiny-llama") == 97 * 35 + 3 * layer + 35 + 35 * 97 == 36_330


def test_mlp_has_depth_times_width_squared_parameters() -> None:
    assert _parameters("mlp-3x128") == 3 * 128 * 128 == find_architecture("mlp-3x128").parameters


def test_gpt2_refuses_more_tokens_than_it_has_positions() -> None:
    options = Options(batch=1, sequence=1025, dtype="bfloat16", attention="flash")
    with pytest.raises(RecorderError, match="--seq 1025: gpt2 has positions for at most 1024 tokens"):
        model_workload(find_architecture("gpt2"), options)


@pytest.mark.parametrize("name", ["mlp-0x8", "mlp-8", "tiny-lama"])
def test_unknown_model_is_refused(name: str) -> None:
    with pytest.raises(RecorderError, match=f"unknown model '{name}'"):
        find_architecture(name)
