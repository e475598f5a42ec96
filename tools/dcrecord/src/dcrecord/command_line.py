"""The program: picks the command, and turns errors into one sentence and an exit code."""

from __future__ import annotations

import os
import sys
import threading
from typing import NoReturn

from dcrecord.architectures import ARCHITECTURES
from dcrecord.errors import RecorderError, printable

BAD_INPUT = 2
SYSTEM_FAILURE = 3
INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended


def run() -> NoReturn:
    """The program. It ends with its command, whatever threads a model's file has left running."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        os._exit(code)
    sys.exit(code)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(arguments)
    except RecorderError as error:
        print(f"dcrecord: error: {printable(str(error))}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"dcrecord: error: {error}", file=sys.stderr)
        return SYSTEM_FAILURE
    except KeyboardInterrupt:
        print("dcrecord: interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["list"]:
        return run_list(arguments[1:])
    if arguments[:1] == ["reference"]:
        from dcrecord.reference_command import run_reference

        return run_reference(arguments[1:])
    if arguments[:1] == ["kernels"]:
        from dcrecord.kernels_command import run_kernels

        return run_kernels(arguments[1:])
    if arguments[:1] == ["lower"]:
        from dcrecord.lower_command import run_lower

        return run_lower(arguments[1:])
    from dcrecord.record_command import run_record

    return run_record(arguments[1:], of_file=True) if arguments[:1] == ["hf"] else run_record(arguments)


def run_list(arguments: list[str]) -> int:
    """Prints the named models."""
    if arguments:
        raise RecorderError(f"unexpected argument '{arguments[0]}': expected `python -m dcrecord list` alone")
    print(f"{'name':<14}{'parameters':>16}  {'batch':>5} {'seq':>5}  {'dtype':<9} attention")
    for name, entry in ARCHITECTURES.items():
        sizes = f"{entry.parameters:>16,}  {entry.batch:>5} {entry.sequence:>5}"
        print(f"{name:<14}{sizes}  {entry.dtype:<9} {entry.attention}")
    print(f"{'mlp-DxW':<14}{'D*W*W':>16}   2048     1  bfloat16  none   D bias-free layers of W x W, such as mlp-8x4096")
    return 0
