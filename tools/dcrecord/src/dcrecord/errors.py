"""The one exception for wrong input, and the sentence that names the nearest known word."""

import difflib
import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class RecorderError(Exception):
    """Something that was asked for cannot be recorded; the message is for the person who asked.

    Caught in command_line.py only, where it becomes a message on stderr and exit code 2.
    """


def shown(value: object) -> str:
    """A value of a file as JSON, of which messages have the start."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def printable(text: str) -> str:
    """The text without bytes that a terminal would obey."""
    return "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text)


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """` (did you mean 'x'?)` for the known word nearest to `word`, or nothing when none is near."""
    nearest = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f" (did you mean '{nearest[0]}'?)" if nearest else ""


@contextmanager
def without_logging() -> Iterator[None]:
    """Inside, libraries log nothing: what they log of a failure is in the exception, too."""
    logged = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logged)
