"""--no-dropout sets every probability of dropping something to 0; without it one sentence says where they stand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import refused_modules as modules
import torch
from conftest import PLAIN, operators, record_module
from dcrecord.building import build_without_weights
from dcrecord.errors import RecorderError
from dcrecord.options import Reporter
from dcrecord.recording import record
from dcrecord.workload import Fill, Workload, call_by_position
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)

WORDS = torch.arange(16).view(2, 8) % 10


class Words(nn.Module):
    """A language model of transformers with the dropout of its configuration."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model.train()

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=words, labels=words).loss


def _bert() -> nn.Module:
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    return Words(BertForMaskedLM(BertConfig(vocab_size=10, num_hidden_layers=2, **sizes)))


def _gpt2() -> nn.Module:
    return Words(GPT2LMHeadModel(GPT2Config(vocab_size=10, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)))


def _t5() -> nn.Module:
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2}
    return Words(T5ForConditionalGeneration(T5Config(vocab_size=10, decoder_start_token_id=0, **sizes)))


KEYS = {
    _bert: ("attention_probs_dropout_prob 0.1 of BertConfig", "hidden_dropout_prob 0.1 of BertConfig"),
    _gpt2: ("attn_pdrop 0.1 of GPT2Config", "embd_pdrop 0.1 of GPT2Config", "resid_pdrop 0.1 of GPT2Config"),
    _t5: ("dropout_rate 0.1 of T5Config",),
}


def _recorded_without_dropout(make: Any, example: torch.Tensor, fill: Fill) -> tuple[dict[str, Any], list[str]]:
    """The document, and what the recorder says of dropout."""
    options = replace(PLAIN, no_dropout=True)
    body, unknown = build_without_weights(make, options.torch_dtype)
    report = Reporter()
    document = record(Workload("module", body, call_by_position, {"x": example}, {"x": fill}, 1, unknown), options, report)
    return document, [line for line in report.lines if "dropout" in line]


@pytest.mark.parametrize("make", KEYS, ids=lambda make: make.__name__)
def test_models_of_transformers_are_recorded_without_dropout(make: Any) -> None:
    document, said = _recorded_without_dropout(make, WORDS, Fill(10))
    assert not [name for name in operators(document, "forward") if "dropout" in name]
    assert len(said) == 1 and said[0].startswith("--no-dropout: set to 0: ") and " Dropout, " in said[0]
    assert all(key in said[0] for key in KEYS[make])


def test_live_dropout_of_a_model_is_one_sentence() -> None:
    with pytest.raises(RecorderError) as refused:
        record_module(_bert, WORDS)
    message = str(refused.value)
    assert message.startswith("dropout draws random numbers in ") and message.endswith("expected --no-dropout, which sets all to 0")
    assert "model.bert.embeddings.dropout" in message and " more;" in message and "\n" not in message
    assert all(key in message for key in KEYS[_bert]) and " Dropout, " in message


class FunctionalWithout(modules.Layer):
    """FunctionalDropout without it."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(rows)[None, None]
        return nn.functional.scaled_dot_product_attention(hidden, hidden, hidden).mean()


def test_probabilities_in_the_code_are_0_too() -> None:
    document, said = _recorded_without_dropout(modules.FunctionalDropout, torch.zeros(4, 8), Fill())
    plain = record_module(FunctionalWithout, torch.zeros(4, 8))
    assert [operators(document, each) for each in ("forward", "backward")] == [
        operators(plain, each) for each in ("forward", "backward")
    ]
    assert said == ["--no-dropout: the model has no probability of dropping anything"]
    with pytest.raises(RecorderError, match="dropout draws random numbers in 2 calls"):
        record_module(modules.FunctionalDropout, torch.zeros(4, 8))


@dataclass(frozen=True)
class Settings:
    dropout: float = 0.25


class DropPath(modules.Layer):
    """Drops the branch of a residual at random, as timm's module of this name."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = Settings()
        self.drop_prob = 0.1

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(rows)
        if self.drop_prob > 0:
            hidden = hidden * rows.new_empty(rows.shape[0], 1).bernoulli_(1 - self.drop_prob)
        return nn.functional.dropout(rows + hidden, self.settings.dropout).mean()


def test_attributes_of_modules_and_their_settings_are_set() -> None:
    document, said = _recorded_without_dropout(DropPath, torch.zeros(4, 8), Fill())
    assert said == ["--no-dropout: set to 0: 1 DropPath, dropout 0.25 of Settings"]
    assert not {"aten::bernoulli", "aten::native_dropout"} & set(operators(document, "forward"))
    with pytest.raises(RecorderError, match="dropout draws random numbers in 2 calls"):
        record_module(DropPath, torch.zeros(4, 8))
