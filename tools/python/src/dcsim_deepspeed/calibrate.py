"""`python -m dcsim_deepspeed calibrate`: what this host takes for what DeepSpeed's Python does around a compiled graph.

Trains a model of very small parameters with DeepCompile's ZeRO-1 on one GPU, at two sizes. Its kernels take no time to
speak of, so how long the host is in a call is what the call costs, and what grows with the number of parameters is what
each of them costs. Medians of STEPS steps.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

# Parameters of the two models: those of a small decoder and of a middle-sized one.
SIZES = (64, 192)
STEPS = 20
WARM_UP = 6
# Operators and launches of a parameter, as predictions count them (model/passes/lower_gradient_handling.cpp).
OVERFLOW, NORM = (3, 13), (2, 2)
# A launch among other operators takes longer than in a loop of its own (docs/design/costs/host.md).
AMONG_OTHERS = 1.15
_LOOP = 500


class _Parameters(nn.Module):
    """`count` parameters, the product of which is one fused kernel."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.factors = nn.ParameterList(nn.Parameter(torch.ones(64)) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        for factor in self.factors:
            x = x * factor
        return x.sum()


class _NoGradients(torch.autograd.Function):
    """As DeepCompile's backward: gradients are kept elsewhere, autograd gets none."""

    @staticmethod
    def forward(context: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        context.count = len(parameters)
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return (gradient, *[None] * context.count)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m dcsim_deepspeed calibrate", description=__doc__.splitlines()[0])
    parser.add_argument("--out", metavar="FILE", help="for the keys, to put into a cluster file; stdout if left out")
    parser.add_argument("--samples", metavar="FILE", help="for all times, as JSON")
    asked = parser.parse_args(arguments)
    _alone()
    import deepspeed

    deepspeed.init_distributed(verbose=False)
    found = measure()
    if asked.samples:
        Path(asked.samples).write_text(json.dumps(found, indent=1) + "\n")
    text = host_section(found, _source())
    if asked.out:
        Path(asked.out).write_text(text)
    else:
        print(text, end="")
    sys.stdout.flush()
    os._exit(0)  # Inductor's compilers may hold the interpreter


def measure() -> dict[str, Any]:
    """Microseconds by call; under "samples" those of each size."""
    return {"launch_in_a_loop_us": _launch_us(), "samples": [_measured(count) for count in SIZES]}


def host_section(found: dict[str, Any], source: str) -> str:
    """The keys of a cluster file's `host`."""
    launch = found["launch_in_a_loop_us"] * AMONG_OTHERS
    samples = found["samples"]
    taken = sum(_of_each(samples, key) for key in ("has_overflow_us", "get_grad_norm_direct_us"))
    calls, launches = (sum(each) for each in zip(OVERFLOW, NORM))
    times = {
        "launch": launch,
        "python_operator": max(0.0, (taken - launches * launch) / calls),
        "autograd_node": max(0.0, _of_each(samples, "autograd_us")),
        "compiled_graph": statistics.mean(statistics.median(each["forward_us"]) for each in samples),
    }
    lines = [f"  {key}: {round(value * 1e3)} ns" for key, value in times.items()]
    return "\n".join(["host:", *lines, f"  source: {source}", ""])


def _of_each(samples: list[dict[str, Any]], key: str) -> float:
    """By how much the median grows with each parameter."""
    small, large = ((each["parameters"], statistics.median(each[key])) for each in samples)
    return (large[1] - small[1]) / (large[0] - small[0])


def _alone() -> None:
    """One rank, if nobody launched several."""
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}.items():
        os.environ.setdefault(name, value)
    if "MASTER_PORT" not in os.environ:
        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            os.environ["MASTER_PORT"] = str(free.getsockname()[1])


def _synchronize() -> None:
    from deepspeed.accelerator import get_accelerator

    get_accelerator().synchronize()


def _device() -> torch.device:
    from deepspeed.accelerator import get_accelerator

    return torch.device(get_accelerator().current_device_name())


def _measured(count: int) -> dict[str, Any]:
    """Microseconds of each step's calls, with the GPU at rest before them."""
    import deepspeed
    from deepspeed.compile.util import pre_backward_hooks

    torch._dynamo.reset()
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 1},
        "steps_per_print": 10**9,
        "zero_allow_untested_optimizer": True,
        "compile": {"deepcompile": True},
    }
    model = _Parameters(count).to(_device(), torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    engine = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), optimizer=optimizer, config=config)[0]
    engine.compile()
    times: dict[str, list[float]] = {"forward_us": []}
    for name in ("has_overflow", "get_grad_norm_direct"):
        taken = times[f"{name}_us"] = []
        inner = getattr(engine.optimizer, name)
        setattr(engine.optimizer, name, lambda *given, i=inner, t=taken, **named: _timed(t, lambda: i(*given, **named)))
    x = torch.ones(64, device=_device(), dtype=torch.bfloat16)
    for _ in range(WARM_UP + STEPS):
        loss = _timed(times["forward_us"], lambda: engine(x))
        engine.backward(loss)
        engine.step()
    engine.destroy()
    pre_backward_hooks.clear()  # they outlive their engine
    times["autograd_us"] = _autograd_us(count)
    return {"parameters": count, **{key: [round(each, 1) for each in taken[WARM_UP:]] for key, taken in times.items()}}


def _autograd_us(count: int) -> list[float]:
    parameters = [nn.Parameter(torch.ones(64, device=_device())) for _ in range(count)]
    times: list[float] = []
    for _ in range(WARM_UP + STEPS):
        x = torch.ones(1, device=_device(), requires_grad=True)
        returned = _NoGradients.apply(x, *parameters)
        _timed(times, returned.backward)
    return times


def _timed(times: list[float], call: Callable[[], Any]) -> Any:
    _synchronize()
    started = time.perf_counter()
    result = call()
    times.append((time.perf_counter() - started) * 1e6)
    return result


def _launch_us() -> float:
    """An elementwise operator called from C++, in a loop."""

    def loop(x: Tensor, count: int) -> Tensor:
        for _ in range(count):
            x.add_(1)
        return x

    scripted = torch.jit.script(loop)
    x = torch.zeros(64, device=_device())
    times: list[float] = []
    for _ in range(WARM_UP + STEPS):
        _timed(times, lambda: scripted(x, _LOOP))
    return statistics.median(times[WARM_UP:]) / _LOOP


def _source() -> str:
    import deepspeed

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    versions = f"DeepSpeed {deepspeed.__version__}, torch {torch.__version__.partition('+')[0]}"
    return f"python -m dcsim_deepspeed calibrate; {versions}, {device}, {day}"
