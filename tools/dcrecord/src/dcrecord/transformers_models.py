"""Which model of transformers a configuration asks for, checked before anything is built."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from dcrecord.errors import RecorderError, did_you_mean, shown, without_logging
from dcrecord.training_tasks import TASKS, Task, set_problem

os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported: it would ask for kernels

# Sizes that a file must have where its family has a number of its own for them, in transformers' names.
_SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("encoder_layers", "encoder_attention_heads", "encoder_ffn_dim", "decoder_layers", "decoder_attention_heads"),
    *("decoder_ffn_dim", "d_ff", "d_kv", "ffn_dim", "hidden_dim", "num_experts", "num_local_experts", "moe_intermediate_size"),
    *("hidden_sizes", "depths"),
)

# The most that a size may be: of modules that are built one by one, and of the length of a dimension.
_MOST_PARTS = 4096
_MOST_ELEMENTS = 2**24

# Parts of a model that take other inputs than words.
_OTHER_PARTS = ("vision", "audio", "speech", "image", "video")


@dataclass(frozen=True)
class TransformersModel:
    """A class of transformers with its configuration.

    positions   how many tokens a sequence may have; None where nothing bounds it
    notes       what was chosen that the configuration does not say
    """

    model_class: Any
    config: Any
    task: Task
    positions: int | None
    notes: list[str]


def find_model(config: Mapping[str, Any], source: str) -> TransformersModel:
    """The model that a config.json asks for; `source` is what messages call it."""
    family = _family_of(config, source)
    class_name, notes = _class_name_of(config, family, source)
    import transformers

    model_class = getattr(transformers, class_name)
    config_class = _config_class(family)
    _check_given_sizes(config, config_class, source)
    with quiet():
        settings = _build_config(config_class, config, source)
    _check_missing_sizes(config, config_class, settings, source)
    notes += [f"{source}: {each}" for each in (*_ignored(config), *_unread(config, config_class, settings, source))]
    return TransformersModel(model_class, settings, _task_of(class_name), _positions(model_class, settings), notes)


@contextmanager
def quiet() -> Iterator[None]:
    """What transformers logs and warns of a configuration is refused or said here, or of no interest to who records."""
    with warnings.catch_warnings(), without_logging():
        warnings.simplefilter("ignore")
        yield


def _ignored(config: Mapping[str, Any]) -> Iterator[str]:
    """Notes on what the file says of other code, of its weights and of its age."""
    from packaging.version import InvalidVersion, Version
    from transformers import __version__ as installed

    if config.get("auto_map"):
        yield "auto_map: code of the model's repository is not run, transformers' own is recorded"
    if config.get("quantization_config"):
        yield "quantization_config: not read, the model is recorded as it is trained without quantisation"
    written_by = config.get("transformers_version")
    try:
        newer = written_by is not None and Version(str(written_by)) > Version(installed)
    except InvalidVersion:
        newer = False
    if newer:
        yield f"transformers_version: {written_by} wrote the file; {installed}, the installed one, may not know all of it"


def _family_of(config: Mapping[str, Any], source: str) -> str:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    family = config.get("model_type")
    if isinstance(family, str) and family in CONFIG_MAPPING_NAMES:
        return family
    if family is None:
        raise RecorderError(f"{source}: model_type: missing, expected the model's family{_family_of_class(config)}")
    if not isinstance(family, str):
        raise RecorderError(f"{source}: model_type: {shown(family)} given, expected a family's name, such as \"llama\"")
    own = "; code of its repository (auto_map) is not run" if config.get("auto_map") else ""
    raise RecorderError(
        f"{source}: model_type: unknown family {shown(family)}{did_you_mean(family, CONFIG_MAPPING_NAMES)}{own}; expected one of the "
        f"{len(CONFIG_MAPPING_NAMES)} of the installed transformers, such as llama, bert or t5"
    )


def _family_of_class(config: Mapping[str, Any]) -> str:
    """`, such as "llama"`: that of the class that the configuration names, if it is known."""
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None
    family = next((family for task in TASKS for family, classes in _table(task.table).items() if name in classes), "llama")
    return f", such as \"{family}\""


@cache
def _table(name: str) -> dict[str, tuple[str, ...]]:
    """Names of classes by family."""
    from transformers.models.auto import modeling_auto

    table = getattr(modeling_auto, f"MODEL_FOR_{name}_MAPPING_NAMES")
    return {family: (names,) if isinstance(names, str) else tuple(names) for family, names in table.items()}


def _task_of(class_name: str) -> Task | None:
    return next((task for task in TASKS for names in _table(task.table).values() if class_name in names), None)


def _classes_of(family: str) -> list[str]:
    """Classes of a family that can be recorded, by task."""
    names = [name for task in TASKS for name in _table(task.table).get(family, ())]
    return [name for name in dict.fromkeys(names) if not _other_parts(name)]


def _other_parts(class_name: str) -> list[str]:
    """Parts of a class's models that take images or sound beside words."""
    import transformers

    parts = getattr(getattr(transformers, class_name).config_class, "sub_configs", {})
    return [part for part in parts if any(word in part for word in _OTHER_PARTS)]


def _class_name_of(config: Mapping[str, Any], family: str, source: str) -> tuple[str, list[str]]:
    """The first of `architectures`, or that which the family is trained for first; and notes on the choice."""
    names = config.get("architectures")
    if names is None or names == []:
        return _first_class(family, source), [f"{source}: architectures: missing, {_first_class(family, source)} recorded"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RecorderError(f"{source}: architectures: {shown(names)} given, expected a list of names of classes")
    name = names[0]
    _check_class(name, family, source)
    others = [f"{source}: architectures: {', '.join(names[1:])} not recorded beside {name}"] if names[1:] else []
    if _task_of(name) is None:
        taken = _first_class(family, source)
        return taken, [*others, f"{source}: architectures: {name} computes no loss that is recorded, {taken} recorded instead"]
    return name, others


def _first_class(family: str, source: str) -> str:
    known = _classes_of(family)
    if not known:
        raise RecorderError(
            f"{source}: model_type: no class of family '{family}' is recorded; expected models for {_expected_tasks()}"
        )
    return known[0]


def _check_class(name: str, family: str, source: str) -> None:
    import transformers

    config_class = getattr(getattr(transformers, name, None), "config_class", None)
    if config_class is None:
        near = did_you_mean(name, _classes_of(family)) or did_you_mean(name, _all_classes())
        raise RecorderError(f"{source}: architectures: unknown class {shown(name)}{near}; {_expected(family)}")
    if parts := _other_parts(name):
        raise RecorderError(
            f"{source}: architectures: {name} takes more than words ({', '.join(parts)}), which is not recorded; expected the "
            "model of its words: the object text_config in a file of its own"
        )
    if config_class is not _config_class(family):
        raise RecorderError(
            f"{source}: architectures: {name} is a class of model_type '{config_class.model_type}', and model_type is '{family}'; "
            f"{_expected(family)}"
        )


def _all_classes() -> list[str]:
    return [name for task in TASKS for names in _table(task.table).values() for name in names]


def _expected_tasks() -> str:
    return ", ".join(task.words for task in TASKS)


def _expected(family: str) -> str:
    known = _classes_of(family)
    return f"expected one of {', '.join(known)}" if known else f"no class of family '{family}' is recorded"


def _config_class(family: str) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return CONFIG_MAPPING[family]


def _check_given_sizes(config: Mapping[str, Any], config_class: Any, source: str) -> None:
    for size in _SIZES:
        own, names, default = _size_of(size, config_class)
        for name in names:
            if name in config and (default is not None or config[name] is not None):
                _check_size(config[name], name, source)


def _check_missing_sizes(config: Mapping[str, Any], config_class: Any, settings: Any, source: str) -> None:
    """Sizes are in the file, if under an older name: transformers would take those of its own example model."""
    for size in _SIZES:
        own, names, default = _size_of(size, config_class)
        if default is None or getattr(settings, own, None) != default or any(name in config for name in names):
            continue
        near = did_you_mean(own, set(config) - set(_defaults(config_class)))
        raise RecorderError(
            f"{source}: {own}: missing{near}, expected the model's own number (that of {config_class.__name__} is "
            f"{json.dumps(default)})"
        )


def _size_of(size: str, config_class: Any) -> tuple[str, list[str], Any]:
    """A family's own name for a size, all its names for it, and its default."""
    own = config_class.attribute_map.get(size, size)
    aliases = [name for name, meant in config_class.attribute_map.items() if meant == own]
    return own, [own, *aliases], _defaults(config_class).get(own)


def _defaults(config_class: Any) -> dict[str, Any]:
    return {field.name: field.default for field in dataclasses.fields(config_class)}


def _check_size(value: Any, name: str, source: str) -> None:
    """Sizes that nobody has would take all memory or time."""
    most = _MOST_PARTS if any(word in name for word in ("layer", "depths", "expert")) else _MOST_ELEMENTS
    numbers = value if isinstance(value, list) else [value]
    if not numbers or any(isinstance(each, bool) or not isinstance(each, int) or not 1 <= each <= most for each in numbers):
        raise RecorderError(f"{source}: {name}: {shown(value)} given, expected whole numbers of 1 to {most:,}")


def _build_config(config_class: Any, config: Mapping[str, Any], source: str) -> Any:
    chosen = ("attn_implementation", "_attn_implementation", "experts_implementation", "dtype", "torch_dtype")
    given = {name: value for name, value in config.items() if name not in chosen}
    try:
        settings = config_class.from_dict(json.loads(json.dumps(given)))
        set_problem(settings)
    except Exception as error:
        raise RecorderError(f"{source}: {sentence_of(error, config)}") from error
    for each in (settings, settings.get_text_config(decoder=True), settings.get_text_config(encoder=True)):
        each.use_cache = False
    return settings


def sentence_of(error: BaseException, config: Mapping[str, Any]) -> str:
    """What transformers says of a configuration, in a line, with the fields that it is about where they can be told."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        word = error.args[0]
        field = next((path for path, value in _words_of(config) if value == word), None)
        if field is not None:
            return f"{field}: unknown word {shown(word)}{did_you_mean(word, _known_words())}; expected one that transformers knows"
    if "alidation error" not in text:
        return f"{type(error).__name__}: {text}"
    said = re.sub(r"^Class validation error for validator '\w+': (\w+: )?", "", text)
    told = [name for name in config if name.removeprefix("num_").replace("_", " ") in said and str(config[name]) in said]
    return f"{', '.join(told)}: {said}" if told else said


def _words_of(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Path and value of each word in a configuration."""
    for name, value in config.items():
        if isinstance(value, str):
            yield path + name, value
        elif isinstance(value, Mapping):
            yield from _words_of(value, f"{path}{name}.")


def _known_words() -> list[str]:
    from transformers.activations import ACT2FN
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    return [*ACT2FN, *ROPE_INIT_FUNCTIONS]


def _unread(config: Mapping[str, Any], config_class: Any, settings: Any, source: str) -> list[str]:
    """A note on fields that the family does not have; one that is nearly another's name is refused."""
    fields = {field.name for field in dataclasses.fields(config_class)}
    known = fields | set(config_class.attribute_map) | set(dir(config_class)) | {"auto_map", "quantization_config"}
    extra = [name for name in config if name in vars(settings) and name not in known and not name.startswith("_")]
    for name in extra:
        near = did_you_mean(name, fields - set(config), cutoff=0.9)
        if near:
            raise RecorderError(f"{source}: unknown field {shown(name)}{near}; expected fields of {config_class.__name__}")
    if not extra:
        return []
    more = f" and {len(extra) - 20} more" if len(extra) > 20 else ""
    named = ", ".join(extra[:20]) + more
    return [f"no fields of {config_class.__name__}, read only where transformers' code asks for them: {named}"]


def positions_of(config: Any) -> int | None:
    """Rows of the table of positions, or as many as rotary positions were made for; None where nothing bounds them.

    Families without a bound say so in many ways, XLNet by -1.
    """
    most = getattr(config, "max_position_embeddings", None) or getattr(config, "max_target_positions", None)
    return most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else None


def _positions(model_class: Any, settings: Any) -> int | None:
    most = positions_of(settings.get_text_config())
    padding = getattr(settings, "pad_token_id", None)
    counted = most is not None and isinstance(padding, int) and _counts_from_padding(model_class)
    return most - padding - 1 if counted else most


def _counts_from_padding(model_class: Any) -> bool:
    """Whether the rows up to that of padding stand for no position, as in RoBERTa."""
    home = sys.modules[model_class.__module__]
    classes = [value for name, value in vars(home).items() if name.endswith("Embeddings")]
    return any(hasattr(each, "create_position_ids_from_input_ids") for each in classes)
