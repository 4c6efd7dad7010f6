"""An argument parser whose mistakes are errors like all others, with the nearest name."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from npusim.cli import meant
from npusim.core.errors import InputError, Place, Problem, choose_from, nearest

_CHOICE = re.compile(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", re.S)
_VALUE = re.compile(r"argument ([^:]+): (.*)", re.S)


class Parser(argparse.ArgumentParser):
    """What is unknown is refused by the verb it was given to."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse everything; InputError for what is left over."""
        parsed, extras = super().parse_known_args(args, namespace)
        if extras:
            raise InputError(*self._unknown(extras))
        return parsed, []

    def error(self, message: str) -> NoReturn:
        """Raise InputError where argparse would print its usage and exit."""
        choice = _CHOICE.fullmatch(message)
        if choice:
            flag, found = choice[1], choice[2]
            allowed = re.findall(r"'([^']*)'", choice[3])
            hints = choose_from(found, allowed)
            if flag == "WHAT":  # a name where its kind is wanted
                hints = (*hints, *meant.show(found))
            raise InputError(Problem(f"unknown {found!r}", Place(flag), hints))
        value = _VALUE.fullmatch(message)
        if value:
            raise InputError(Problem(value[2], Place(value[1])))
        raise InputError(Problem(message, hints=(f"see {self.prog} --help",)))

    def _unknown(self, extras: Sequence[str]) -> list[Problem]:
        flags = list(self._option_string_actions)
        problems = []
        for extra in extras:
            flag = extra.partition("=")[0]
            if not flag.startswith("-"):
                hints = meant.command(self.prog, extra, flags)
                text = f"{self.prog}: unexpected argument {extra!r}"
                problems.append(Problem(text, hints=hints))
                continue
            near = nearest(flag, flags)
            hints = (*((f"nearest: {near}",) if near else ()), f"see {self.prog} --help")
            problems.append(Problem(f"{self.prog} has no flag {flag}", hints=hints))
        return problems


def whole_number(text: str) -> int:
    """The type of flags that count; argparse reports the ArgumentTypeError."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of 0 or more, found {text!r}")
    return value
