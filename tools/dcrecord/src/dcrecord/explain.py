"""What went wrong while tracing, said to the person who wrote the module."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from dcrecord.errors import RecorderError

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
        "the module fails on inputs of these shapes: {0}; expected a module that runs",
    ),
    (
        r"Unsupported: .*\n\s*Explanation: (.*)",
        "graph break: {0} Expected tensor operators only",
    ),
)

_PACKAGES = ("torch", "dcrecord")


def explain(error: Exception, warned: Sequence[str] = ()) -> RecorderError:
    """What went wrong while tracing, in a sentence.

    warned   warnings of the trace; autograd tells in one where the forward of a failing derivative is
    """
    causes = list(_causes(error))
    where = _where(causes, warned)
    for cause in causes:
        if isinstance(cause, RecorderError):
            return RecorderError(f"{cause}{where}")
    text = "\n".join(f"{type(cause).__name__}: {cause}" for cause in causes)
    raised = _raised(text)
    if raised is not None:
        return RecorderError(raised + where)
    for pattern, sentence in _KNOWN:
        found = re.search(pattern, text)
        if found:
            return RecorderError(sentence.format(*found.groups()) + where)
    return RecorderError(f"the module cannot be traced: {type(error).__name__}: {_first_line(error)}{where}")


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


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else "no message"


def _where(causes: Sequence[BaseException], warned: Sequence[str]) -> str:
    """The innermost line of the user's code that PyTorch names, as ` (at model.py:12 in forward)`, without folders."""
    text = "\n".join([*map(str, causes), *warned])
    frames = [(path, line, function) for path, line, function in re.findall(r'File "([^"]+)", line (\d+), in (\S+)', text)]
    for cause in causes:
        stack = getattr(cause, "real_stack", None) or traceback.extract_tb(cause.__traceback__)
        frames += [(frame.filename, frame.lineno, frame.name) for frame in stack]
    own = [frame for frame in frames if not set(_PACKAGES) & set(Path(frame[0]).parts)]
    if not own:
        return ""
    path, line, function = own[-1]
    return f" (at {Path(path).name}:{line} in {function})"
