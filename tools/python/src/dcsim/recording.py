"""`record`: dcrecord from Python."""

from __future__ import annotations

import os
from typing import Any

from dcsim.asking import load
from dcsim.errors import InputError
from dcsim.results import Workload


def record(model: str | os.PathLike, out: str | os.PathLike, **options: Any) -> Workload:
    """Records the training step of a model into the folder `out`: `python -m dcrecord` (docs/reference/recorder.md).

    model     a named model ("qwen3-4b"), the config.json of a Hugging Face model, or FILE.py:FUNCTION
    options   those of the program: batch=2, seq=4096, no_dropout=True

    Needs torch: pip install 'dcsim[record]'. Raises InputError where something cannot be recorded.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError("recording needs torch: pip install 'dcsim[record]'") from error
    from dcrecord.errors import RecorderError, printable
    from dcrecord.record_command import run_record

    text = os.fspath(model)
    try:
        run_record([text, *_words(options), "-o", os.fspath(out)], of_file=text.endswith(".json"))
    except RecorderError as error:
        raise InputError(printable(str(error))) from error
    return load(out)


def _words(options: dict[str, Any]) -> list[str]:
    """Options as the program takes them; a list is an option that may be repeated."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is False or value is None:
            continue
        if value is True:
            words.append(flag)
            continue
        for each in value if isinstance(value, (list, tuple)) else [value]:
            words += [flag, str(each)]
    return words
