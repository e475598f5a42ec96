"""What is asked of the recorder, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dcrecord.errors import RecorderError

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16")
HALF_PRECISION = ("bfloat16", "float16")
# In which order PyTorch 2.11 asks kernels whether they take a call: on GPUs of compute capability 9 and 10 (H100, H200, B200)
# where cuDNN is 9.15.1 or newer; and on others, or with TORCH_CUDNN_SDPA_DEPRIORITIZED=1.
AUTOMATIC_KERNELS = {
    "auto": ("cudnn", "flash", "efficient", "math"),
    "auto-without-cudnn": ("flash", "efficient", "math"),
}
ATTENTION_KERNELS = (*AUTOMATIC_KERNELS, "flash", "efficient", "cudnn", "math")
PARTITIONERS = ("mincut", "default")
BACKENDS = ("aten", "inductor", "inductor-layers")
# Kernels that compute in half precision only.
HALF_PRECISION_KERNELS = ("flash", "cudnn")


@dataclass(frozen=True)
class Options:
    """Choices of one recording.

    activation_checkpointing   checkpoints each block
    checkpoint                 patterns of the paths of modules to checkpoint
    frozen                     patterns of the names of parameters that are not trained
    hold                       names of the outputs that the caller holds; None is all that the module returns
    no_dropout                 sets every probability of dropping something to 0
    build_masks                transformers builds masks that hide nothing, as it does where torch.compile traces it
    backend                    inductor: the compiled graphs, too; inductor-layers: the one whose layers are compiled apart
    stand_ins                  writes into them what each kernel computes
    """

    batch: int | None
    sequence: int | None
    dtype: str
    attention: str
    partitioner: str = "mincut"
    activation_checkpointing: bool = False
    autocast: str | None = None
    frozen: tuple[str, ...] = ()
    hold: tuple[str, ...] | None = None
    checkpoint: tuple[str, ...] = ()
    no_dropout: bool = False
    build_masks: bool = False
    backend: str = "aten"
    stand_ins: bool = False

    def check(self) -> None:
        """Throws RecorderError for choices that contradict each other."""
        if self.autocast is not None and self.dtype != "float32":
            raise RecorderError(
                f"--autocast {self.autocast} with --dtype {self.dtype}: autocast casts float32 parameters, "
                "expected --dtype float32"
            )
        if self.activation_checkpointing and self.checkpoint:
            raise RecorderError("--activation-checkpointing with --checkpoint: expected one of the two")
        if self.stand_ins and self.backend == "aten":
            raise RecorderError("--stand-ins: expected it with --backend inductor, whose kernels they stand in for")
        for name, value in (("--batch", self.batch), ("--seq", self.sequence)):
            if value is not None and value < 1:
                raise RecorderError(f"{name} {value}: expected a whole number of at least 1")

    @property
    def torch_dtype(self) -> torch.dtype:
        return torch_dtype(self.dtype)


def torch_dtype(name: str) -> torch.dtype:
    """PyTorch's dtype of that name; imports PyTorch late, so that reading a command line does not wait for it."""
    import torch

    return getattr(torch, name)


@dataclass
class Reporter:
    """Says on one line each what long steps do; silent unless a `print_line` is given."""

    print_line: object = None
    lines: list[str] = field(default_factory=list)

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if callable(self.print_line):
            self.print_line(line)
