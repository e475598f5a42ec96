"""What went wrong while tracing, said to the person who wrote the module."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from dcrecord.building import tensors_in
from dcrecord.errors import RecorderError
from dcrecord.module_paths import where
from dcrecord.workload import TrainingStep

# What PyTorch's messages say, and the sentence for it; a group of the pattern stands for {0}. The first match counts.
_KNOWN = (
    (
        r"Trying to backward through ([\w.]+) but no autograd formula",
        "operator {0} has no derivative; expected operators of namespace aten",
    ),
    (
        r"FlexAttention|flex_attention",
        "flex_attention is a higher-order operator, which exists in Python only; expected scaled_dot_product_attention",
    ),
    (
        r"DynamicOutputShapeException|[Dd]ynamic shape operator|dynamic output shape",
        "dynamic shapes: the shape of a tensor depends on data; expected static shapes: pad or mask instead of selecting "
        "elements",
    ),
    (
        r"[Dd]ata.dependent|_local_scalar_dense|Tensor\.item|generic_jump|DataDependentOutputException",
        "graph break: Python code depends on the contents of a tensor; expected tensor operators (torch.where) in place "
        "of .item(), if and while on tensors, and module.eval() where a module drops layers with probability 0",
    ),
    (
        r"Dynamo failed to run FX node with fake tensors: [\s\S]*?: got (.*)",
        "the module fails on inputs of these shapes and dtypes: {0}; expected a module that runs",
    ),
    (
        r"doesn't handle types other than float and double",
        "the derivative of an operator takes float32 and float64 only; expected --dtype float32, or a cast (.float())",
    ),
    (
        r"Unsupported: .*\n\s*Explanation: (.*)",
        "graph break: {0} Expected tensor operators only",
    ),
)

def explain(error: BaseException, warned: Sequence[str] = (), module: str = "") -> RecorderError:
    """What went wrong while tracing, in a sentence.

    warned   warnings of the trace; autograd tells in one where the forward of a failing derivative is
    module   path of the module that failed, where it is known
    """
    causes = list(_causes(error))
    place = _where(causes, warned, module)
    for cause in causes:
        if isinstance(cause, RecorderError):
            return RecorderError(f"{cause}{place}")
    text = "\n".join(f"{type(cause).__name__}: {cause}" for cause in causes)
    raised = _raised(text)
    if raised is not None:
        return RecorderError(raised + place)
    for pattern, sentence in _KNOWN:
        found = re.search(pattern, text)
        if found:
            return RecorderError(sentence.format(*found.groups()) + place)
    return RecorderError(f"the module cannot be traced: {type(error).__name__}: {_first_line(error)}{place}")


def failing_module(step: TrainingStep, inputs: Sequence[Tensor]) -> str:
    """Path of the innermost module that fails when the step is run as it stands, untraced, or whose derivative does; empty
    when none does."""
    paths = {id(module): path for path, module in step.body.named_modules()}
    running: list[str] = []
    derivatives: dict[Any, str] = {}

    def leave(module: nn.Module, _: Any, returned: Any) -> None:
        running.pop()
        _claim(tensors_in(returned), paths.get(id(module), ""), derivatives)

    hooks = (
        register_module_forward_pre_hook(lambda module, _: running.append(paths.get(id(module), ""))),
        register_module_forward_hook(leave),
    )
    try:
        loss = step(*inputs)["loss"]
        if not loss.requires_grad:
            return ""
        for derivative, path in derivatives.items():
            derivative.register_prehook(lambda _, path=path: running.append(path))
        loss.backward()
    except (Exception, SystemExit):
        return running[-1] if running else ""
    finally:
        for hook in hooks:
            hook.remove()
    return ""


def _claim(returned: Sequence[Tensor], path: str, derivatives: dict[Any, str]) -> None:
    """Notes for each derivative behind these tensors that no module inside has made: it is of the module at `path`."""
    waiting = [tensor.grad_fn for tensor in returned]
    while waiting:
        derivative = waiting.pop()
        if derivative is not None and derivative not in derivatives:
            derivatives[derivative] = path
            waiting += [before for before, _ in derivative.next_functions]


def _raised(text: str) -> str | None:
    """What is said of an exception of the traced code, which Dynamo only describes."""
    found = re.search(r"raised exception (\w+)\([(\[](.*)[)\]]\)", text)
    if found is None or "FlexAttention" in found[2]:
        return None
    said = ", ".join(re.findall(r"ConstantVariable\(\w+: (.*?)\)(?=, ConstantVariable|,?$)", found[2]))
    if found[1] == RecorderError.__name__:
        return said[1:-1]
    return f"the module raises {found[1]}: {said or 'no message'}; expected a module that runs"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else "no message"


def _where(causes: Sequence[BaseException], warned: Sequence[str], module: str) -> str:
    """The module, and the innermost line of the user's code that PyTorch names, without folders."""
    text = "\n".join([*map(str, causes), *warned])
    frames = [(path, int(line), function) for path, line, function in re.findall(r'File "([^"]+)", line (\d+), in (\S+)', text)]
    for cause in causes:
        stack = getattr(cause, "real_stack", None) or traceback.extract_tb(cause.__traceback__)
        frames += [(frame.filename, frame.lineno, frame.name) for frame in stack]
    return where(module, frames)
