"""Constants of a teacher's own: the same exercise, but last year's answer is wrong."""

import hashlib
import itertools
import re
from typing import Any

from coursekit.slips import EXERCISES


def variant_constants(name: str, seed: int | None) -> dict[str, Any]:
    """Choose the constants of one exercise.

    Args:
        name: Name of the exercise.
        seed: Of the variant; None for the public one.

    Returns:
        Name → value; in a variant at least one differs from the public one, if the
        exercise has constants.

    Raises:
        ValueError: If there is no such exercise.
    """
    if name not in EXERCISES:
        raise ValueError(f"{name!r} is no exercise. Use one of {sorted(EXERCISES)}.")
    choices = EXERCISES[name].constants
    public, *others = itertools.product(*choices.values())
    chosen = public
    if seed is not None and others:
        digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
        chosen = others[int.from_bytes(digest[:8]) % len(others)]
    return dict(zip(choices, chosen, strict=True))


def with_constants(cell_id: str, source: str, seed: int | None) -> str:
    """Write the constants of a variant into the cell of a solution notebook.

    Args:
        cell_id: ``card-``, ``known-`` or ``check-`` and the name of an exercise; other
            cells stay as they are.
        source: Text of the cell, with the public constants.
        seed: Of the variant; None leaves all as it is.

    Returns:
        The text with the constants of the variant.

    Raises:
        ValueError: If the cell has no place for the constants.
    """
    role, _, name = cell_id.partition("-")
    named = variant_constants(name, seed) if name in EXERCISES else {}
    if seed is None or not named or role not in ("card", "known", "check"):
        return source
    told = ", ".join(f"{key}={value!r}" for key, value in named.items())
    if role == "card":
        pattern, new = r"^\*\*Constants\.\*\* .*$", card_line(name, seed)
    elif role == "check":
        pattern = r"^((?:    )?checks\.(?:check_\w+|hidden)\(.*)\)$"
        new = rf"\1, {told})"
    else:  # a question without inputs shows another case already
        pattern = rf"^(checks\.known\(\"{name}\"(?:, (?!\w+=).*)?)\)$"
        new = rf"\1, {told})"
        if re.search(r"checks\.known\(\"\w+\", \w+=", source):
            return source
    changed, count = re.subn(pattern, new, source, flags=re.MULTILINE)
    if not count:
        raise ValueError(
            f"cell {cell_id} has no line for its constants. Write **Constants.** on "
            f"the card, and each call of checks on a line of its own."
        )
    return changed


def card_line(name: str, seed: int | None) -> str:
    """Write the line of the card that tells the constants.

    Args:
        name: Name of the exercise.
        seed: Of the variant; None for the public constants.

    Returns:
        The line, or an empty text without any constants.
    """
    named = variant_constants(name, seed).items()
    told = " · ".join(f"`{key}` = {value!r}" for key, value in named)
    return f"**Constants.** {told}" if told else ""
