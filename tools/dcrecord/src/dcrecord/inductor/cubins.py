"""Triton kernels of a compiled form as programs for its GPU, without one: Triton compiles, and nothing is launched."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from dcrecord.errors import RecorderError
from dcrecord.inductor.kernels import config_of
from dcrecord.inductor.no_gpu import gpu_to_compile_for

# Triton hands every kernel two more pointers behind its arguments, to scratch memory (triton/backends/nvidia/driver.py).
SCRATCH_POINTERS = 2
# What a block may have on sm_90; Inductor leaves configurations out that need more.
SHARED_BYTES = 227 * 1024


def compile_kernel(kernel: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of a kernels file for an entry of a graph's `kernels`, one for each configuration that a GPU takes.

    Throws RecorderError where the source is not the one that its hash names, where the installed PyTorch has other
    configurations for it, and for kernels that need more than a plain launch.
    """
    source = kernel["source"]
    if hashlib.sha256(source.encode()).hexdigest()[:16] != kernel["hash"]:
        raise RecorderError(f"kernel {kernel['name']}: its hash is not that of its source; record the workload again")
    with gpu_to_compile_for():
        tuner = _tuner_of(source)
        configs = [config_of(config) for config in tuner.configs]
        if configs != kernel["configs"]:
            raise RecorderError(f"kernel {kernel['name']}: this PyTorch compiles it with {configs}: expected {kernel['configs']}")
        compiled = [_compile(tuner, config) for config in tuner.configs]
    fitting = [_entry(kernel, config, *made) for config, made in zip(configs, compiled) if made[0].metadata.shared <= SHARED_BYTES]
    if not fitting:
        raise RecorderError(f"kernel {kernel['name']} needs more than {SHARED_BYTES} bytes of shared memory, which a block has")
    return fitting


def _entry(kernel: dict[str, Any], config: dict[str, int], compiled: Any, meta: dict[str, Any]) -> dict[str, Any]:
    _require_plain_launch(kernel["name"], compiled)
    names = [name for name, _ in kernel["signature"]]
    passed = [names.index(name) for name, kind in meta["signature"].items() if kind != "constexpr"]
    taken = _parameters(compiled.asm["ptx"])
    if taken != len(passed) + SCRATCH_POINTERS:
        raise RecorderError(f"kernel {kernel['name']} takes {taken} parameters: expected {len(passed)} and {SCRATCH_POINTERS} more")
    divisible = {name for (position,), facts in meta["configs"][0].items() for name in _divisible(meta, position, facts)}
    return {
        "hash": kernel["hash"],
        "config": config,
        "entry": compiled.metadata.name,
        "shared": compiled.metadata.shared,
        "arguments": passed,
        "aligned": [names.index(name) for name in names if name in divisible and meta["signature"][name].startswith("*")],
        "cubin": base64.b64encode(compiled.asm["cubin"]).decode(),
    }


def _tuner_of(source: str) -> Any:
    from torch._inductor.codecache import PyCodeCache

    return PyCodeCache.load(source).kernel


def _compile(tuner: Any, config: Any) -> tuple[Any, dict[str, Any]]:
    """Triton's result and what it was told; as Inductor's CachingAutotuner._precompile_config does (torch/_inductor/runtime/triton_heuristics.py)."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    meta = tuner._create_compile_meta(config)
    options = tuner._create_compile_options(config, meta)
    code = ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.disable_line_info = True  # lines name a file of this machine
        compiled = triton.compile(code, target=GPUTarget("cuda", meta["cc"], 32), options=options)
    return compiled, meta


def _require_plain_launch(name: str, compiled: Any) -> None:
    facts = compiled.metadata
    more = {
        "clusters": facts.num_ctas != 1,
        "scratch memory": facts.global_scratch_size > 0 or facts.profile_scratch_size > 0,
        "a cooperative launch": facts.launch_cooperative_grid,
        "a programmatic launch": facts.launch_pdl,
    }
    for what, needed in more.items():
        if needed:
            raise RecorderError(f"kernel {name} needs {what}, which dc-run has not: expected a plain launch")


def _parameters(ptx: str) -> int:
    """How many parameters the kernel's entry has."""
    return len(re.findall(r"\.param ", ptx.split(".entry", 1)[1].split(")", 1)[0]))


def _divisible(meta: dict[str, Any], position: int, facts: list[list[Any]]) -> list[str]:
    """The name of the argument at `position` where its address must be a multiple of 16."""
    return [list(meta["signature"])[position]] if ["tt.divisibility", 16] in facts else []
