"""Reading command lines: every fault becomes one sentence that says what was expected and what may have been meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from dcrecord.errors import RecorderError, did_you_mean


class OptionParser(argparse.ArgumentParser):
    """An ArgumentParser that throws RecorderError, and knows the nearest option to a misspelt one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)

    def error(self, message: str) -> NoReturn:
        sentence = message.removeprefix("argument ")
        sentence = re.sub(r"^the following arguments are required: (.*)$", r"missing \1", sentence)
        raise RecorderError(f"{sentence}; see {self.prog} --help")

    def read(self, arguments: list[str]) -> argparse.Namespace:
        """Like parse_args. Misspelt options are looked for first: they also make others seem to be missing."""
        known = [option for action in self._actions for option in action.option_strings]
        for argument in arguments:
            option = argument.partition("=")[0]
            if re.match(r"--?[A-Za-z]", option) and option not in known:
                raise RecorderError(f"unknown option '{option}'{did_you_mean(option, known)}; see {self.prog} --help")
        read, extra = self.parse_known_args(arguments)
        if extra:
            raise RecorderError(f"unexpected argument '{extra[0]}'; see {self.prog} --help")
        return read


def whole_number(at_least: int) -> Callable[[str], int]:
    """Reads a whole number."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?\d+", text) or int(text) < at_least:
            raise argparse.ArgumentTypeError(f"'{text}' given, expected a whole number of at least {at_least}")
        return int(text)

    return read


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Reads one of `names`; of two names neither is suggested."""
    known = list(names)
    suggest = did_you_mean if len(known) > 2 else lambda _word, _known: ""

    def read(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"'{text}' given{suggest(text, known)}, expected one of {', '.join(known)}")
        return text

    return read
