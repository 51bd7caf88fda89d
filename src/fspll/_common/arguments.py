"""Checks of arguments that every room shares: what a number is, and what to say when it is not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fspll._common.errors import InputError


def is_flag(value: Any) -> bool:
    """Tell a truth value, Python's or NumPy's."""
    return isinstance(value, bool | np.bool_)


def is_number(value: Any) -> bool:
    """Tell a real number, Python's or NumPy's; a truth value is one."""
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)


def is_integer(value: Any) -> bool:
    """Tell a whole number, Python's or NumPy's, from a truth value."""
    return isinstance(value, int | np.integer) and not is_flag(value)


def check_count(
    name: str, value: Any, least: int = 0, *, error: type[InputError] = InputError
) -> None:
    """Raise unless the value is a whole number of ``least`` or more.

    >>> check_count("n_way", 0, 1)
    Traceback (most recent call last):
        ...
    fspll._common.errors.InputError: n_way must be a whole number of 1 or more, not 0
    """
    if not is_integer(value) or value < least:
        raise error(f"{name} must be a whole number of {least} or more, not {value!r}")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise unless the value is one of the choices."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def check_positive(name: str, value: Any, *, zero: bool = False) -> None:
    """Raise unless the value is a finite number above zero, or zero where that is allowed."""
    usable = is_number(value) and np.isfinite(value) and (value > 0 or (zero and value == 0))
    if not usable:
        wanted = "number of 0 or more" if zero else "number above 0"
        raise InputError(f"{name} must be a {wanted}, not {value!r}")


def check_probability(name: str, value: Any) -> None:
    """Raise unless the value is None or a probability."""
    if value is not None and not (is_number(value) and 0 <= value <= 1):
        raise InputError(f"{name} is a probability between 0 and 1, or None, not {value!r}")


def check_level(name: str, value: Any) -> None:
    """Raise unless the value is a share between 0 and 1."""
    if not (is_number(value) and 0 < value <= 1):
        raise InputError(f"{name} is a share above 0 and up to 1, such as 0.99, not {value!r}")
