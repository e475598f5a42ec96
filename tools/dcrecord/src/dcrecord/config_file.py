"""A config.json as a Hugging Face repository has it: reading it, and what of it is recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from dcrecord.architectures import Architecture
from dcrecord.errors import RecorderError, did_you_mean, shown
from dcrecord.options import DTYPES
from dcrecord.transformers_models import TransformersModel, find_model

# Tokens of a sequence where nothing else is asked and the model has as many positions.
_SEQUENCE = 2048


def read_architecture(given: str) -> tuple[Architecture, list[str]]:
    """The model of a file, or of the config.json of a folder; and notes on what was chosen for it."""
    path = Path(given)
    path = path / "config.json" if path.is_dir() else path
    config = _read_json(path)
    model = find_model(config, str(path))
    architecture = Architecture(
        name=_name_of(config),
        parameters=None,
        config=config,
        sequence=_sequence_of(model),
        dtype=_dtype_of(config, str(path)),
        path=str(path),
    )
    return architecture, model.notes


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise RecorderError(f"there is no file {path}: expected a config.json, or the folder that holds it")
    try:
        config = json.loads(path.read_bytes(), object_pairs_hook=lambda pairs: _object(pairs, path))
    except json.JSONDecodeError as error:
        raise RecorderError(f"{path}:{error.lineno}:{error.colno}: {error.msg}; expected JSON") from error
    except UnicodeDecodeError as error:
        raise RecorderError(f"{path}: byte {error.start} is no UTF-8; expected JSON") from error
    except ValueError as error:
        raise RecorderError(f"{path}: a number of too many digits; expected a model's configuration") from error
    except RecursionError as error:
        raise RecorderError(f"{path}: lists and objects lie too deep in each other; expected a model's configuration") from error
    if not isinstance(config, dict):
        raise RecorderError(f"{path}: holds {_kind_of(config)}, expected an object with a model's configuration")
    return config


def _object(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RecorderError(f"{path}: {shown(twice)}: given twice, expected once")
    return found


def _kind_of(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number", type(None): "null"}
    return kinds[type(value)]


def _name_of(config: dict[str, Any]) -> str:
    """Last part of the repository's name, where the file tells it, else the family."""
    repository = config.get("_name_or_path")
    last = repository.rstrip("/").rpartition("/")[2] if isinstance(repository, str) else ""
    return re.sub(r"[^A-Za-z0-9._-]", "-", last).strip(".") or config["model_type"]


def _sequence_of(model: TransformersModel) -> int | None:
    if model.task.of_images:
        return None
    learned = getattr(model.config, "n_positions", None)  # T5 was trained on as many tokens, and takes more
    known = [most for most in (model.positions, learned) if isinstance(most, int) and most > 0]
    return min(_SEQUENCE, *known) if known else _SEQUENCE


def _dtype_of(config: dict[str, Any], source: str) -> str:
    key = "dtype" if config.get("dtype") is not None else "torch_dtype"
    given = config.get(key)
    if given is None:
        return "bfloat16"
    name = str(given).removeprefix("torch.")
    if name not in DTYPES:
        raise RecorderError(
            f"{source}: {key}: {shown(given)} given{did_you_mean(name, DTYPES)}, expected one of {', '.join(DTYPES)}"
        )
    return name
