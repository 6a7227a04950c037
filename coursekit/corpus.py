"""The shipped novels as characters, and which part serves which purpose."""

import torch
from torch import Tensor

from coursekit import _shipped

_SHA256 = {
    "pride_and_prejudice": (
        "dfc684d4f857fa938268f9ab9c5567b64bd0691251eca959644adeabe6287a4d"
    ),
    "sense_and_sensibility": (
        "105e1651fe93bed7130078578efd31e0c557d68667ba672ddc876f735b30fe09"
    ),
    "persuasion": "8061549557aebd2fd6e353d18d9197cb707029112bd52d4d8b174583a925848a",
}
TRAIN = ("pride_and_prejudice", "sense_and_sensibility")
"""The novels to train on."""
HELD_OUT = "persuasion"
"""The novel that no model is trained on; its two volumes serve two purposes."""
CHOOSING = slice(0, 215_529)
"""Characters of ``HELD_OUT`` to choose settings by: chapters 1 to 12."""
REPORTED = slice(215_529, 466_854)
"""Characters of ``HELD_OUT`` for the numbers to report: chapters 13 to 24."""
ALPHABET = (
    "\n !\"&'()*,-.0123456789:;?ABCDEFGHIJKLMNOPQRSTUVWYZ[]_abcdefghijklmnopqrstuvwxyz"
)
"""The 79 characters of the three novels, in code order; the place is the id."""


def load(name: str) -> str:
    """Read a novel.

    Args:
        name: One of ``TRAIN``, or ``HELD_OUT``.

    Returns:
        The text; lines end with a newline alone.

    Raises:
        ValueError: If there is no such novel, or its file is missing or changed.
    """
    if name not in _SHA256:
        raise ValueError(
            f"name is {name!r}, but three novels are shipped. Use one of "
            f"{', '.join(_SHA256)}."
        )
    return _shipped.read(f"{name}.txt", _SHA256[name]).decode("ascii")


def encode(text: str) -> Tensor:
    """Number the characters of a text.

    Args:
        text: Any string over ``ALPHABET``.

    Returns:
        Ids, (length,) int64.

    Raises:
        ValueError: If a character is not in the alphabet.

    Example:
        >>> encode("Anne")
        tensor([25, 66, 66, 57])
    """
    unknown = sorted(set(text) - set(ALPHABET))
    if unknown:
        raise ValueError(
            f"{unknown} not among the {len(ALPHABET)} characters of the novels, so "
            f"there is no id for it. Leave it out, or write it another way."
        )
    number = {character: index for index, character in enumerate(ALPHABET)}
    return torch.tensor([number[character] for character in text], dtype=torch.int64)


def decode(ids: Tensor) -> str:
    """Turn ids back into text.

    Args:
        ids: (length,) whole numbers below 79.

    Returns:
        The text.

    Raises:
        ValueError: If ``ids`` are not one row of ids of the alphabet.
    """
    last = len(ALPHABET) - 1
    row = ids.dim() == 1 and not ids.is_floating_point()
    if not row or not all(0 <= index <= last for index in ids.tolist()):
        raise ValueError(
            f"ids are {tuple(ids.shape)} {ids.dtype}, but they must be one row of "
            f"whole numbers from 0 to {last}, to be read back. Decode row by row."
        )
    return "".join(ALPHABET[index] for index in ids.tolist())
