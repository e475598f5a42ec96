"""The one exception for wrong input, and the sentence that names the nearest known word."""

import difflib
from collections.abc import Iterable


class RecorderError(Exception):
    """Something that was asked for cannot be recorded; the message is for the person who asked.

    Caught in command_line.py only, where it becomes a message on stderr and exit code 2.
    """


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the known word nearest to `word`, or nothing when none is near."""
    nearest = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean '{nearest[0]}'?)" if nearest else ""
