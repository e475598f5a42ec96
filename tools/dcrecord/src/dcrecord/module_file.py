"""Workloads of `file.py:function`: a function of the user's own that returns a module and its inputs."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from dcrecord.building import Builder, build_without_weights
from dcrecord.errors import RecorderError, did_you_mean
from dcrecord.options import Options
from dcrecord.transformers_models import positions_of
from dcrecord.workload import Fill, Workload, call_by_name, call_by_position

_EXPECTED = "expected (module, inputs), inputs being a tensor, a tuple of tensors or a dict of tensors by name"


def file_workload(
    model: str,
    name: str,
    options: Options,
    vocabularies: Mapping[str | None, int],
    builder: Builder = build_without_weights,
) -> Workload:
    """The workload called `name` that the function of `model` (file.py:function) returns.

    vocabularies   numbers of different integers by name of an input; that under None is for all others
    builder        how modules are built: without memory for their weights, unless somebody wants to run them
    """
    function = load_function(model)
    sizes = _sizes_for(function, options, model)
    returned, unknown = builder(lambda: _call(function, sizes, model), options.torch_dtype)
    body, inputs, call = _read_returned(returned, model)
    _check_names(vocabularies, inputs)
    _check_positions(body, inputs)
    fills = {input_name: _fill(input_name, tensor, vocabularies) for input_name, tensor in inputs.items()}
    return Workload(name, body, call, inputs, fills, _tokens_of(inputs), unknown)


def load_function(model: str) -> Callable[..., Any]:
    """Loads the file, which can import its neighbours, as a script can."""
    path_text, _, function_name = model.rpartition(":")
    path = Path(path_text)
    if not path_text.endswith(".py") or not function_name.isidentifier():
        raise RecorderError(f"'{model}': expected file.py:function, such as net.py:build")
    if not path.is_file():
        raise RecorderError(f"'{model}': there is no file {path}")
    sys.path.insert(0, str(path.resolve().parent))
    module = _load(path)
    functions = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    if function_name not in functions:
        raise RecorderError(f"{path.name} has no function '{function_name}'{did_you_mean(function_name, functions)}")
    return getattr(module, function_name)


def _load(path: Path) -> ModuleType:
    """Runs the file as a module of its own name, as `import` would, so that its classes have a home."""
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "dcrecord_module_file"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise RecorderError(f"{path.name} cannot be loaded: {_sentence(error, path)}") from error
    return module


def _sizes_for(function: Callable[..., Any], options: Options, model: str) -> dict[str, int]:
    """The function's own `batch` and `sequence`, where asked for."""
    parameters = inspect.signature(function).parameters
    asked = {"batch": ("--batch", options.batch), "sequence": ("--seq", options.sequence)}
    given = {name: value for name, (_, value) in asked.items() if value is not None}
    for name in given:
        if name not in parameters:
            raise RecorderError(f"{asked[name][0]}: {model} takes no parameter '{name}'; expected a function that does")
    missing = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in given
    ]
    if missing:
        option = asked[missing[0]][0] if missing[0] in asked else "a default value"
        raise RecorderError(f"{model} needs '{missing[0]}': expected {option}")
    return given


def _call(function: Callable[..., Any], sizes: dict[str, int], model: str) -> Any:
    try:
        return function(**sizes)
    except (Exception, SystemExit) as error:
        raise RecorderError(f"{model} failed: {_sentence(error, Path(model.rpartition(':')[0]))}") from error


def _sentence(error: BaseException, path: Path) -> str:
    """The error with its last line in the user's file."""
    traceback, line = error.__traceback__, None
    while traceback is not None:
        if Path(traceback.tb_frame.f_code.co_filename).name == path.name:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno
    where = "" if line is None else f" (at {path.name}:{line})"
    return f"{type(error).__name__}: {str(error) or 'no message'}{where}"


def _read_returned(returned: Any, model: str) -> tuple[nn.Module, dict[str, torch.Tensor], Callable[..., Any]]:
    """Module, inputs by name, and how to call the one with the others."""
    if not isinstance(returned, (tuple, list)) or len(returned) != 2 or not isinstance(returned[0], nn.Module):
        raise RecorderError(f"{model} returned {_describe(returned)}: {_EXPECTED}")
    body, inputs = returned
    if isinstance(inputs, Mapping):
        named, call = dict(inputs), call_by_name(tuple(inputs))
    else:
        sequence = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
        named, call = dict(zip(_positional_names(body, len(sequence)), sequence)), call_by_position
    for name, value in named.items():
        if not isinstance(value, torch.Tensor):
            raise RecorderError(f"{model}: input '{name}' is {_describe(value)}: {_EXPECTED}")
    if not named:
        raise RecorderError(f"{model} returned no inputs: {_EXPECTED}")
    return body, {name: tensor.detach() for name, tensor in named.items()}, call


def _describe(value: Any) -> str:
    return f"an object of type {type(value).__name__}"


def _positional_names(body: nn.Module, count: int) -> Sequence[str]:
    """Names that the module's forward gives to its inputs."""
    parameters = inspect.signature(body.forward).parameters.values()
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return names if len(names) >= count else [f"input_{index}" for index in range(count)]


def _fill(name: str, tensor: torch.Tensor, vocabularies: Mapping[str | None, int]) -> Fill:
    """Floats are uniform; integers are below the vocabulary, which else the example shows: its largest + 1."""
    if tensor.is_floating_point():
        return Fill()
    if tensor.is_complex():
        raise RecorderError(f"input '{name}' is {tensor.dtype}: expected floats, integers or bools")
    given = vocabularies.get(name, vocabularies.get(None))
    if given is not None:
        return Fill(given)
    if tensor.dtype is torch.bool:
        return Fill(2)
    if tensor.is_meta:
        raise RecorderError(f"input '{name}' is too large to keep its example: expected --vocabulary {name}=N")
    return Fill(int(tensor.max()) + 1)


def _check_names(vocabularies: Mapping[str | None, int], inputs: Mapping[str, torch.Tensor]) -> None:
    integers = [name for name, tensor in inputs.items() if not tensor.is_floating_point()]
    for name in vocabularies:
        if name is not None and name not in integers:
            raise RecorderError(f"--vocabulary {name}=...: there is no integer input of that name{did_you_mean(name, integers)}")


def _check_positions(body: nn.Module, inputs: Mapping[str, torch.Tensor]) -> None:
    """Models of transformers say how many positions they have; beyond, a learned table has no rows and a rotary one no
    training."""
    configurations = [getattr(module, "config", None) for module in body.modules()]
    limits = [positions_of(each) for each in configurations]
    most = max((limit for limit in limits if limit is not None), default=None)
    for name, tensor in inputs.items():
        if most is not None and not tensor.is_floating_point() and tensor.dim() == 2 and tensor.shape[1] > most:
            raise RecorderError(
                f"input '{name}' has {tensor.shape[1]} tokens in a row, and the model positions for at most {most} "
                "(max_position_embeddings): expected no more, such as with --seq"
            )


def _tokens_of(inputs: Mapping[str, torch.Tensor]) -> int:
    """Elements of the first input if it holds integers; else its rows, or its images if it has 4 dimensions or more."""
    first = next(iter(inputs.values()))
    if not first.is_floating_point():
        return first.numel()
    leading = first.shape[:1] if first.dim() != 3 else first.shape[:2]
    return max(1, leading.numel())
