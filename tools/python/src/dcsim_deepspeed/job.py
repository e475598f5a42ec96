"""What this package asks of a DeepSpeed engine, in one place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

TORCH = "2.11"
DEEPSPEED = ("0.19.6", "0.19.8")

# Steps after which DeepSpeed compiles anew, with prefetching and selective gathers (deepspeed/compile/init_z3.py).
WARM_UP = 5
OWN_FIRST_PASSES = ["zero3_compile"]
OWN_LATER_PASSES = ["zero3_compile", "prefetch", "selective_gather"]

# Functions of DeepSpeed and operators that plans are put in with.
_NEEDED_FUNCTIONS = {
    "deepspeed.compile.passes.zero3_compile": ("add_gather_and_release", "add_gather_and_reduce", "add_z3_gather_release"),
    "deepspeed.compile.fx": ("add_end_backward", "replace_reduce_outputs_with_none", "should_release_reduce_buckets"),
    "deepspeed.compile.util": ("get_deepcompile_handle", "get_no_copy_ops", "get_param_nodes", "is_cast_op"),
    "deepspeed.compile.backend": ("launch_compile_passes", "remaining_schedule"),
}
_OWN_COMPILE = "_dcsim_own_compile"

# Keys of DeepSpeed's "compile" section under which its ops do what no plan describes.
_OTHER_FEATURES = (
    "offload_parameters",
    "offload_opt_states",
    "offload_activation",
    "symmetric_memory",
    "sync_before_reduce",
    "sync_after_reduce",
    "sync_before_allgather",
    "sync_after_allgather",
    "passes",
)


def plain_version(text: str) -> str:
    return text.split("+")[0]


def version_problem(allow_untested: bool) -> str:
    """What speaks against these versions of torch and DeepSpeed; empty when nothing does."""
    import deepspeed

    found_torch, found = plain_version(torch.__version__), plain_version(deepspeed.__version__)
    if not allow_untested:
        if not found_torch.startswith(TORCH + "."):
            return f"torch {found_torch} is not tested, {TORCH} is; allow_untested=True tries it"
        if found not in DEEPSPEED:
            return f"DeepSpeed {found} is not tested, {' and '.join(DEEPSPEED)} are; allow_untested=True tries it"
    return _missing_function()


def _missing_function() -> str:
    import importlib

    for module, names in _NEEDED_FUNCTIONS.items():
        try:
            loaded = importlib.import_module(module)
        except ImportError:
            return f"this DeepSpeed has no {module}"
        for name in names:
            if not hasattr(loaded, name):
                return f"this DeepSpeed's {module} has no {name}"
    return ""


def engine_problem(engine: Any) -> str:
    """What keeps this engine from running plans, or from being recorded; empty when nothing does."""
    if engine.zero_optimization_stage() != 3:
        return f"zero_optimization.stage is {int(engine.zero_optimization_stage())}, plans are for 3"
    if not engine.is_deepcompile_enabled():
        return 'DeepCompile is off: expected "compile": {"deepcompile": true} in the DeepSpeed configuration'
    if engine.is_compiled:
        return "the engine is compiled already"
    offloaded = engine._config.zero_config.offload_param
    if offloaded is not None and offloaded.device != "none":
        return "zero_optimization.offload_param is on, which no plan describes"
    config = engine._config.compile_config
    for key in _OTHER_FEATURES:
        if getattr(config, key, None):
            return f"compile.{key} is on, which no plan describes"
    return ""


def parameter_names(engine: Any) -> dict[int, str]:
    """Names of the module's parameters by DeepSpeed's id; the first one of a tied parameter."""
    names: dict[int, str] = {}
    for name, parameter in engine.module.named_parameters():
        names.setdefault(parameter.ds_id, name)
    return names


def own_compile(engine: Any) -> Callable[..., None]:
    """The engine's compile() as DeepSpeed has it, whatever `install` put in its place."""
    method = type(engine).compile
    return getattr(method, _OWN_COMPILE, method).__get__(engine)


def mark_own_compile(replacement: Callable[..., Any], own: Callable[..., Any]) -> None:
    setattr(replacement, _OWN_COMPILE, getattr(own, _OWN_COMPILE, own))


@contextmanager
def outside_of_tracing() -> Iterator[None]:
    """Inside, tensors are real ones: passes are called under a mode of fake tensors.

    Dispatchers in Python are off too: a collective that goes through one holds the interpreter's lock while it waits for
    gloo's queue, and a thread of gloo that holds the queue may wait for that lock.
    """
    from torch._dispatch.python import no_python_dispatcher
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily(), no_python_dispatcher():
        yield


def of_all_ranks(engine: Any, value: Any) -> list[Any]:
    """`value` of every data-parallel rank. All ranks have to call it."""
    group = engine.data_parallel_group
    values = [None] * dist.get_world_size(group)
    with outside_of_tracing():
        dist.all_gather_object(values, value, group=group)
    return values


def say(text: str) -> None:
    """One line, from rank 0."""
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(f"dc-sim: {text}", flush=True)


def start_at(engine: Any, step: int) -> None:
    """DeepSpeed begins a schedule's entry when global_steps equals it. A checkpoint that is loaded between compile()
    and the first step changes global_steps: the schedule, which began at `step`, then moves with it."""
    from deepspeed.compile import backend

    inner = engine.launch_compile_passes
    pending = [step]

    def launch(global_steps: int, *args: Any, **kwargs: Any) -> None:
        if pending:
            ahead = global_steps - pending.pop()
            backend.remaining_schedule = deque((at + ahead, passes) for at, passes in backend.remaining_schedule)
        inner(global_steps, *args, **kwargs)

    engine.launch_compile_passes = launch


def behind_steps(engine: Any, call: Callable[[], Any]) -> None:
    """Calls `call` behind each step of the engine in which the optimizer has stepped, until it returns True."""
    inner = engine.step

    def step(*args: Any, **kwargs: Any) -> Any:
        before = engine.global_steps
        result = inner(*args, **kwargs)
        if engine.global_steps > before and call():
            engine.step = inner
        return result

    engine.step = step


def plain_dtype(dtype: torch.dtype) -> str:
    """`torch.bfloat16` -> `bfloat16`."""
    return str(dtype).removeprefix("torch.")
