"""Dropout: where its probabilities stand, setting them to 0, and saying where they are not 0."""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from dcrecord.cuda_operators import registered
from dcrecord.errors import RecorderError

# Composites that draw where the probability is not 0, with the input first.
_OPERATORS = "dropout dropout_ feature_dropout feature_dropout_ alpha_dropout alpha_dropout_ feature_alpha_dropout"


@contextmanager
def without_dropout() -> Iterator[None]:
    """Inside, functions that drop elements of CPU tensors drop none, whatever probability the code gives them."""
    kernels: dict[str, Callable[..., Any]] = dict.fromkeys(_OPERATORS.split(), lambda input, _p, _train: input)
    with registered(kernels, "AutogradCPU"):
        yield


def remove_dropout(body: nn.Module) -> str:
    """Sets every probability of dropping something to 0; what was set, in a sentence."""
    found = list(_probabilities(body))
    said = _said(found)
    for owner, name, _ in found:
        object.__setattr__(owner, name, 0.0) if dataclasses.is_dataclass(owner) else setattr(owner, name, 0.0)
    return f"--no-dropout: set to 0: {said}" if said else "--no-dropout: the model has no probability of dropping anything"


def settle_layer_drops(body: nn.Module) -> None:
    """Modules that drop whole layers compare a random number with the probability, which cannot be traced. Those whose
    probabilities are all 0 are taken out of training, which changes nothing else of them: what lies in them stays."""
    for path, module in body.named_modules():
        if not module.training or not _drops_layers(type(module)):
            continue
        config = getattr(module, "config", None)
        own = [*_of_module(module), *((config, *item) for item in _layer_drops(config))]
        if own:
            where = f"module {path}" if path else "the root module"
            what = "whole layers" if any("layerdrop" in name.lower() for _, name, _ in own) else "elements"
            raise RecorderError(
                f"{where} drops {what} at random (probabilities: {_said(list(_probabilities(body)))}); expected "
                "--no-dropout, which sets all to 0"
            )
        module.training = False


@cache
def _drops_layers(kind: type[nn.Module]) -> bool:
    try:
        return "layerdrop" in inspect.getsource(kind.forward)
    except (OSError, TypeError):
        return False


def _layer_drops(config: Any) -> list[tuple[str, float]]:
    """Probabilities of dropping a layer in a configuration."""
    named = vars(config).items() if hasattr(config, "__dict__") else ()
    return [(name, value) for name, value in named if "layerdrop" in name.lower() and _is_probability(value)]


def live_dropout(body: nn.Module, calls: list[str]) -> str:
    """What is said of the calls that drop something.

    calls   paths of the modules of these calls
    """
    paths = list(dict.fromkeys(calls))
    first = ", ".join(path or "the root module" for path in paths[:3])
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    said = _said(list(_probabilities(body)))
    where = f"; probabilities: {said}" if said else ""
    times = "1 call" if len(calls) == 1 else f"{len(calls)} calls"
    return f"dropout draws random numbers in {times} (modules {first}{more}{where}); expected --no-dropout, which sets all to 0"


def _said(found: list[tuple[Any, str, float]]) -> str:
    """`24 Dropout, hidden_dropout_prob 0.1 of BertConfig`."""
    modules = Counter(type(owner).__name__ for owner, _, _ in found if isinstance(owner, nn.Module))
    keys = {(name, value, type(owner).__name__) for owner, name, value in found if not isinstance(owner, nn.Module)}
    words = [f"{count} {kind}" for kind, count in sorted(modules.items())]
    return ", ".join(words + [f"{name} {value:g} of {owner}" for name, value, owner in sorted(keys)])


def _probabilities(body: nn.Module) -> Iterator[tuple[Any, str, float]]:
    """Owner, attribute and value of each probability above 0: of modules, and of the configurations that they hold."""
    seen: set[int] = set()
    for module in body.modules():
        yield from _of_module(module)
        for value in vars(module).values():
            yield from _of_settings(value, seen)


def _of_module(module: nn.Module) -> Iterator[tuple[Any, str, float]]:
    is_dropout = isinstance(module, nn.modules.dropout._DropoutNd)
    for name, value in vars(module).items():
        if ((is_dropout and name == "p") or "drop" in name.lower()) and _is_probability(value):
            yield module, name, value


def _of_settings(value: Any, seen: set[int]) -> Iterator[tuple[Any, str, float]]:
    """Of a configuration (transformers', a dataclass, a namespace) and those inside of it."""
    if id(value) in seen or not _is_settings(value):
        return
    seen.add(id(value))
    for name, inner in list(vars(value).items()):
        if "drop" in name.lower() and _is_probability(inner):
            yield value, name, inner
        else:
            yield from _of_settings(inner, seen)


def _is_settings(value: Any) -> bool:
    if isinstance(value, type) or isinstance(value, torch.Tensor):
        return False
    named = any(kind.__name__ in ("PretrainedConfig", "PreTrainedConfig") for kind in type(value).__mro__)
    return named or isinstance(value, SimpleNamespace) or (dataclasses.is_dataclass(value) and hasattr(value, "__dict__"))


def _is_probability(value: Any) -> bool:
    return isinstance(value, float) and 0 < value <= 1
