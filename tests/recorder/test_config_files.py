"""`dcrecord hf CONFIG.json`: models of transformers by their configuration files, and what is said of wrong ones."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from dcrecord.architectures import ARCHITECTURES
from dcrecord.command_line import main
from dcrecord.graph_file import read_document
from graph_checker import faults_of

_SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 40}
_DECODER = {**_SIZES, "num_key_value_heads": 1, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2}
_LLAMA = {**_DECODER, "model_type": "llama", "architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16"}
_PHI3 = {
    **_DECODER,
    "model_type": "phi3",
    "architectures": ["Phi3ForCausalLM"],
    "auto_map": {"AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"},
    "pad_token_id": 3,
    "resid_pdrop": 0.1,
}
_BERT = {
    **_SIZES,
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.1,
}
_DEBERTA = {
    **_SIZES,
    "model_type": "deberta-v2",
    "max_position_embeddings": 32,
    "relative_attention": True,
    "position_buckets": 8,
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
    "type_vocab_size": 0,
}
_T5 = {
    "model_type": "t5",
    "architectures": ["T5ForConditionalGeneration"],
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 24,
    "num_layers": 1,
    "num_heads": 2,
    "vocab_size": 40,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "n_positions": 32,
}
_BART = {
    "model_type": "bart",
    "architectures": ["BartModel"],
    "d_model": 16,
    **{f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 24))},
    "vocab_size": 40,
    "max_position_embeddings": 32,
    "pad_token_id": 1,
    "decoder_start_token_id": 2,
}
_WHISPER = {
    **_BART,
    "model_type": "whisper",
    "architectures": ["WhisperForConditionalGeneration"],
    "num_mel_bins": 8,
    "max_source_positions": 12,
    "max_target_positions": 16,
}
_XLNET = {
    "model_type": "xlnet",
    "architectures": ["XLNetLMHeadModel"],
    "d_model": 16,
    "d_inner": 24,
    "n_head": 2,
    "n_layer": 1,
    "vocab_size": 40,
    "untie_r": True,
}
_OPT = {
    "model_type": "opt",
    "architectures": ["OPTForCausalLM"],
    "hidden_size": 16,
    "word_embed_proj_dim": 16,
    "ffn_dim": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 40,
    "max_position_embeddings": 32,
    "layerdrop": 0.0,
    "pad_token_id": 1,
    "torch_dtype": "float16",
}
_BLOOM = {
    "model_type": "bloom",
    "architectures": ["BloomForCausalLM"],
    "n_embed": 16,
    "n_layer": 1,
    "num_attention_heads": 2,
    "vocab_size": 40,
}
_MIXTRAL = {
    **_DECODER,
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
    "sliding_window": None,
}
_NEOX = {**_SIZES, "model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "max_position_embeddings": 64, "rotary_pct": 0.25}
_ROBERTA = {
    **_BERT,
    "model_type": "roberta",
    "architectures": ["RobertaForSequenceClassification"],
    "pad_token_id": 1,
    "id2label": {"0": "no", "1": "yes", "2": "both"},
}

# A family's configuration, the inputs and the dtype that are recorded, and what is said of it.
FAMILIES: dict[str, tuple[dict[str, Any], list[str], str, str]] = {
    "llama": (_LLAMA, ["input_ids"], "bfloat16", ""),
    "phi3": (_PHI3, ["input_ids"], "bfloat16", "auto_map: code of the model's repository is not run, transformers' own is recorded"),
    "gpt_neox": (_NEOX, ["input_ids"], "bfloat16", "--no-dropout: "),
    "opt": (_OPT, ["input_ids"], "float16", "--no-dropout: set to 0: "),
    "bloom": (_BLOOM, ["input_ids"], "bfloat16", "--no-dropout: "),
    "mixtral": (_MIXTRAL, ["input_ids"], "bfloat16", ""),
    "xlnet": (_XLNET, ["input_ids"], "bfloat16", "no fields of XLNetConfig, read only where transformers' code asks for them: untie_r"),
    "bert": (_BERT, ["input_ids", "labels"], "bfloat16", "hidden_dropout_prob 0.1 of BertConfig"),
    "roberta": (_ROBERTA, ["input_ids", "labels"], "bfloat16", "--no-dropout: set to 0: "),
    "deberta-v2": (_DEBERTA, ["input_ids", "labels"], "bfloat16", "architectures: missing, DebertaV2ForMaskedLM recorded"),
    "t5": (_T5, ["input_ids", "labels"], "bfloat16", "dropout_rate 0.1 of T5Config"),
    "bart": (
        _BART,
        ["input_ids", "labels"],
        "bfloat16",
        "architectures: BartModel computes no loss that is recorded, BartForConditionalGeneration recorded instead",
    ),
    "whisper": (_WHISPER, ["input_features", "labels"], "bfloat16", "--no-dropout: "),
}


def _write(folder: Path, config: Any) -> str:
    path = folder / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return str(path)


def _record(folder: Path, config: Any, *options: str) -> dict[str, Any]:
    assert main(["hf", _write(folder, config), *options, "-o", str(folder / "out")]) == 0
    document = read_document(folder / "out" / "graph.json.xz")
    assert faults_of(document) == []
    return document


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_recorded_from_its_file(family: str, tmp_path: Path, capsys: Any) -> None:
    config, inputs, dtype, said = FAMILIES[family]
    document = _record(tmp_path, config, "--no-dropout", "--batch", "2", "--seq", "16")
    assert document["name"] == family
    assert [each["name"] for each in document["inputs"]] == inputs
    assert document["options"]["dtype"] == dtype
    assert {document["values"][each["value"]]["dtype"] for each in document["params"]} == {dtype}
    assert document["tokens"] == 32
    assert said in capsys.readouterr().err


def test_a_file_gives_the_graphs_of_the_named_model(tmp_path: Path) -> None:
    tiny = ARCHITECTURES["tiny-llama"]
    options = ["--batch", "2", "--seq", "16", "--dtype", "float32", "--attention", "math"]
    document = _record(tmp_path, {**tiny.config, "_name_or_path": "publisher/tiny llama"}, *options)
    assert main(["tiny-llama", "-o", str(tmp_path / "named")]) == 0
    named = read_document(tmp_path / "named" / "graph.json.xz")
    assert document["name"] == "tiny-llama"
    assert document["recorder"]["command"] == f"python -m dcrecord hf config.json {' '.join(options)} -o traces/tiny-llama"
    differ = {key for key in document if document[key] != named[key]}
    assert differ == {"recorder"}


def test_options_of_a_recording_hold_for_a_file(tmp_path: Path) -> None:
    document = _record(tmp_path, _LLAMA, "--batch", "3", "--seq", "8", "--activation-checkpointing", "--hold", "none", "--name", "mine")
    assert document["name"] == "mine"
    assert document["options"]["activation_checkpointing"] is True and document["options"]["hold"] == []
    assert document["tokens"] == 24


def test_the_dtype_and_the_sequence_are_those_of_the_file(tmp_path: Path) -> None:
    document = _record(tmp_path, {**_LLAMA, "torch_dtype": "float16"})
    assert document["options"]["dtype"] == "float16" and document["options"]["sequence"] == 64


def test_a_folder_with_a_config_will_do(tmp_path: Path) -> None:
    _write(tmp_path, _LLAMA)
    assert main(["hf", str(tmp_path), "--seq", "8", "-o", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(("sequence", "factor"), [(16, 1.0), (17, 4.0)])
def test_rotary_frequencies_are_those_of_the_sequence(sequence: int, factor: float, tmp_path: Path) -> None:
    """Phi-3 of long contexts divides its frequencies by one list up to the length of its pretraining, by another beyond."""
    scaling = {"type": "longrope", "short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
    config = {**_PHI3, "original_max_position_embeddings": 16, "rope_scaling": scaling, "resid_pdrop": 0.0}
    document = _record(tmp_path, config, "--seq", str(sequence))
    buffer = next(each for each in document["buffers"] if each["name"] == "model.rotary_emb.inv_freq")
    assert struct.unpack("<f", base64.b64decode(buffer["data"])[:4]) == (1 / factor,)


def test_live_dropout_names_the_keys_of_the_file(tmp_path: Path, capsys: Any) -> None:
    assert main(["hf", _write(tmp_path, _BERT), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "hidden_dropout_prob 0.1 of BertConfig" in said and said.endswith("expected --no-dropout, which sets all to 0")
    assert not (tmp_path / "out").exists()


def test_dropped_layers_are_refused_and_those_of_probability_0_are_not(tmp_path: Path, capsys: Any) -> None:
    assert main(["hf", _write(tmp_path, {**_OPT, "layerdrop": 0.2, "dropout": 0.0}), "-o", str(tmp_path / "out")]) == 2
    assert "module model.decoder drops whole layers at random (probabilities: " in capsys.readouterr().err
    _record(tmp_path, {**_OPT, "dropout": 0.0}, "--seq", "8")


def _without(config: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != name}


BAD_FILES: list[tuple[str, Any, str]] = [
    ("no JSON", '{"model_type": "llama",\n  "vocab_size": }', ":2:17: Expecting value; expected JSON"),
    ("a list", "[1]", "config.json: holds a list, expected an object with a model's configuration"),
    ("a field twice", '{"model_type": "llama", "model_type": "bert"}', 'config.json: "model_type": given twice, expected once'),
    ("no family", {"vocab_size": 5}, 'config.json: model_type: missing, expected the model\'s family, such as "llama"'),
    (
        "no family of a class",
        {"architectures": ["BertForMaskedLM"]},
        'model_type: missing, expected the model\'s family, such as "bert"',
    ),
    ("a family that is none", {**_LLAMA, "model_type": 3}, "model_type: 3 given, expected a family's name"),
    ("an unknown family", {**_LLAMA, "model_type": "lama"}, "model_type: unknown family \"lama\" (did you mean 'llama'?); expected one"),
    (
        "a family of its own code",
        {**_LLAMA, "model_type": "internlm2", "auto_map": {"AutoConfig": "x.Y"}},
        "code of its repository (auto_map) is not run; expected one of",
    ),
    (
        "an unknown class",
        {**_LLAMA, "architectures": ["LlamaForCasualLM"]},
        "architectures: unknown class \"LlamaForCasualLM\" (did you mean 'LlamaForCausalLM'?); expected one of LlamaForCausalLM",
    ),
    ("classes that are no list", {**_LLAMA, "architectures": "LlamaForCausalLM"}, "expected a list of names of classes"),
    (
        "a class of another family",
        {**_LLAMA, "architectures": ["Qwen3ForCausalLM"]},
        "Qwen3ForCausalLM is a class of model_type 'qwen3', and model_type is 'llama'; expected one of LlamaForCausalLM",
    ),
    (
        "more than words",
        {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"]},
        "LlavaForConditionalGeneration takes more than words (vision_config), which is not recorded; expected the model of its "
        "words: the object text_config in a file of its own",
    ),
    ("no recorded class", {"model_type": "sam", "architectures": ["SamModel"]}, "architectures: SamModel takes more than words"),
    ("a missing size", _without(_LLAMA, "hidden_size"), "hidden_size: missing, expected the model's own number (that of LlamaConfig"),
    (
        "a misspelt size",
        {**_without(_LLAMA, "hidden_size"), "hiden_size": 16},
        "hidden_size: missing (did you mean 'hiden_size'?), expected",
    ),
    ("a size in words", {**_LLAMA, "vocab_size": "40"}, 'vocab_size: "40" given, expected whole numbers of 1 to 16,777,216'),
    ("no layers", {**_LLAMA, "num_hidden_layers": 0}, "num_hidden_layers: 0 given, expected whole numbers of 1 to 4,096"),
    ("more layers than anybody has", {**_LLAMA, "num_hidden_layers": 10**9}, "num_hidden_layers: 1000000000 given, expected whole"),
    ("a number without an end", '{"vocab_size": ' + "9" * 5000 + "}", "a number of too many digits; expected a model's configuration"),
    ("bytes for a terminal", {**_LLAMA, "model_type": "\x1b[31m" * 100}, r'unknown family "\u001b[31m'),
    (
        "heads that do not divide",
        {**_LLAMA, "num_attention_heads": 3},
        "hidden_size, num_attention_heads: The hidden size (16) is not a multiple of the number of attention heads (3)",
    ),
    (
        "an unknown activation",
        {**_LLAMA, "hidden_act": "sillu"},
        "hidden_act: unknown word \"sillu\" (did you mean 'silu'?); expected one that transformers knows",
    ),
    ("a misspelt field", {**_LLAMA, "rms_norm_epz": 1e-6}, "unknown field \"rms_norm_epz\" (did you mean 'rms_norm_eps'?)"),
    ("an unknown dtype", {**_LLAMA, "torch_dtype": "bfloat61"}, "torch_dtype: \"bfloat61\" given (did you mean 'bfloat16'?), expected one"),
]


@pytest.mark.parametrize(("config", "sentence"), [row[1:] for row in BAD_FILES], ids=[row[0] for row in BAD_FILES])
def test_a_wrong_file_is_one_sentence_and_exit_code_2(config: Any, sentence: str, tmp_path: Path, capsys: Any) -> None:
    path = _write(tmp_path, config)
    assert main(["hf", path, "--seq", "8", "-o", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert printed[-1].startswith(f"dcrecord: error: {path}") and sentence in printed[-1]
    assert len([line for line in printed if "error" in line]) == 1
    assert not (tmp_path / "out").exists()


BAD_COMMANDS = [
    ("hf", "missing CONFIG, -o/--out"),
    ("hf nothing.json -o out", "there is no file nothing.json: expected a config.json, or the folder that holds it"),
    ("hf config.json --seq 65 -o out", "--seq 65: config.json has positions for at most 64 tokens"),
    ("hf config.json --vocabulary 5 -o out", "--vocabulary: llama has its own; expected it with file.py:function only"),
    ("hf config.json --sqe 5 -o out", "unknown option '--sqe' (did you mean '--seq'?)"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD_COMMANDS, ids=[row[0] for row in BAD_COMMANDS])
def test_wrong_words_are_one_sentence(arguments: str, sentence: str, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path, _LLAMA)
    assert main(arguments.split()) == 2
    assert sentence in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()
