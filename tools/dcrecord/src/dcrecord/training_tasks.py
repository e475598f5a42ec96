"""What models of transformers are trained on: inputs and labels by the task of a model's class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dcrecord.errors import RecorderError
from dcrecord.workload import Call, Fill, call_by_name

_INTEGERS = torch.int64
_SINGLE_LABEL, _MULTI_LABEL, _REGRESSION = "single_label_classification", "multi_label_classification", "regression"

# An input: its tensor, which has no memory, and what it holds.
Input = tuple[torch.Tensor, Fill]


@dataclass(frozen=True)
class Sizes:
    """Sizes of a micro-step; dtype is that of the parameters, and of inputs that are no integers."""

    batch: int
    sequence: int
    dtype: torch.dtype


@dataclass(frozen=True)
class Task:
    """A kind of training.

    words    what messages call it
    table    transformers' table of the classes for it: MODEL_FOR_..._MAPPING_NAMES
    inputs   from a configuration, inputs by the name that the model's forward gives them, first that of the data
    """

    words: str
    table: str
    inputs: Callable[[Any, Sizes], dict[str, Input]]

    @property
    def of_images(self) -> bool:
        return self.inputs is _images

    def call(self, names: tuple[str, ...]) -> Call:
        """How a model is called with inputs of these names."""
        return _next_words(names) if self.inputs is _tokens else call_by_name(names)


def set_problem(config: Any) -> None:
    """Fills in the kind of classification, which models would do at their first call."""
    if config.problem_type is None:
        config.problem_type = _REGRESSION if config.num_labels == 1 else _SINGLE_LABEL


def _integers(below: int, *shape: int) -> Input:
    return torch.empty(shape, dtype=_INTEGERS, device="meta"), Fill(below)


def _floats(dtype: torch.dtype, *shape: int) -> Input:
    return torch.empty(shape, dtype=dtype, device="meta"), Fill()


def _tokens(config: Any, sizes: Sizes) -> dict[str, Input]:
    return {"input_ids": _integers(vocabulary_of(config), sizes.batch, sizes.sequence)}


def vocabulary_of(config: Any) -> int:
    """Rows of the table of words; that of the decoder where encoder and decoder have their own."""
    return getattr(config.get_text_config(decoder=True), "vocab_size", 0)


def _words(config: Any, sizes: Sizes) -> dict[str, Input]:
    return {**_tokens(config, sizes), "labels": _integers(vocabulary_of(config), sizes.batch, sizes.sequence)}


def _classified_tokens(config: Any, sizes: Sizes) -> dict[str, Input]:
    return {**_tokens(config, sizes), "labels": _integers(config.num_labels, sizes.batch, sizes.sequence)}


def _labels(config: Any, sizes: Sizes) -> Input:
    """One class, one number, or a number for each class."""
    if config.problem_type in (None, _SINGLE_LABEL):
        return _integers(config.num_labels, sizes.batch)
    several = config.problem_type == _MULTI_LABEL or config.num_labels > 1
    return _floats(sizes.dtype, sizes.batch, *([config.num_labels] if several else []))


def _classified_text(config: Any, sizes: Sizes) -> dict[str, Input]:
    return {**_tokens(config, sizes), "labels": _labels(config, sizes)}


def _answers(config: Any, sizes: Sizes) -> dict[str, Input]:
    places = _integers(sizes.sequence, sizes.batch)
    return {**_tokens(config, sizes), "start_positions": places, "end_positions": places}


def _images(config: Any, sizes: Sizes) -> dict[str, Input]:
    size = getattr(config, "image_size", 224)
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    pixels = _floats(sizes.dtype, sizes.batch, getattr(config, "num_channels", 3), height, width)
    return {"pixel_values": pixels, "labels": _labels(config, sizes)}


def _speech(config: Any, sizes: Sizes) -> dict[str, Input]:
    """As many frames as the encoder has positions for, each of which its convolutions make of two."""
    if not hasattr(config, "num_mel_bins") or not hasattr(config, "max_source_positions"):
        raise RecorderError(f"model_type: speech of '{config.model_type}' is not recorded; expected whisper")
    frames = 2 * config.max_source_positions
    words = _integers(vocabulary_of(config), sizes.batch, sizes.sequence)
    return {"input_features": _floats(sizes.dtype, sizes.batch, config.num_mel_bins, frames), "labels": words}


def _next_words(names: tuple[str, ...]) -> Call:
    """The labels are the tokens themselves, which the model shifts."""

    def call(body: nn.Module, *inputs: torch.Tensor) -> Any:
        return body(**dict(zip(names, inputs)), labels=inputs[0])

    return call


# A class that is in two tables is trained for the first; a family without a class gets that of the first.
TASKS = (
    Task("sequences to sequences", "SEQ_TO_SEQ_CAUSAL_LM", _words),
    Task("words of speech", "SPEECH_SEQ_2_SEQ", _speech),
    Task("masked words", "MASKED_LM", _words),
    Task("next words", "CAUSAL_LM", _tokens),
    Task("classification of sequences", "SEQUENCE_CLASSIFICATION", _classified_text),
    Task("classification of tokens", "TOKEN_CLASSIFICATION", _classified_tokens),
    Task("answers in a text", "QUESTION_ANSWERING", _answers),
    Task("classification of images", "IMAGE_CLASSIFICATION", _images),
)
