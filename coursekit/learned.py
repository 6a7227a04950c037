"""A table with one row per position, and three ways past its end."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from coursekit import _require


class LearnedPositions(nn.Module):
    """Look up one trained row for each position.

    Row p is whatever training made of it: no formula ties it to row p + 1, and past
    the end of ``table``, (max_length, d_model), there is nothing to look up.

    Source: Gehring et al. 2017, section 3.1, arXiv:1705.03122.
    """

    def __init__(self, max_length: int, d_model: int) -> None:
        """Make the table; ValueError unless both sizes are whole and above 0."""
        super().__init__()
        _require.at_least("max_length", max_length)
        _require.at_least("d_model", d_model)
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the table with standard deviation 0.02, as BERT and GPT-2 do."""
        nn.init.normal_(self.table, std=0.02, generator=generator)

    def forward(self, positions: Tensor) -> Tensor:
        """Return the row of each position, in the dtype of the table.

        Args:
            positions: (length,) or (batch, length), whole numbers in any order.

        Returns:
            (length, d_model) or (batch, length, d_model).

        Raises:
            ValueError: If a position is no whole number, below 0 or past the end.
                ``torch.compile`` and the meta device do not know the values; there
                the range is left to torch's lookup, which refuses them too.
        """
        _require.positions("positions", positions)
        if positions.is_floating_point():
            raise ValueError(
                f"positions are {positions.dtype}, but there is no row between two "
                f"rows, so they must be whole numbers. Use positions.long()."
            )
        known = not (positions.is_meta or torch.compiler.is_compiling())
        low, high = positions.aminmax() if known and positions.numel() else (0, 0)
        rows = len(self.table)
        if low < 0 or high >= rows:
            raise ValueError(
                f"position {int(low if low < 0 else high)} has no row: the table has "
                f"{rows} rows, for 0 to {rows - 1}. Count from 0, or make a longer one "
                f"with repeat_last_row, interpolate_rows or zero_rows."
            )
        return functional.embedding(positions.to(self.table.device).long(), self.table)


def repeat_last_row(table: Tensor, new_length: int) -> Tensor:
    """Make a longer table whose new rows are all the last one.

    Args:
        table: (length, d_model).
        new_length: Number of rows, at least as many as there are.

    Returns:
        (new_length, d_model), in the dtype of ``table``.

    Raises:
        ValueError: If ``new_length`` is below the length of ``table``.
    """
    missing = _missing_rows(table, new_length)
    return torch.cat((table, table[-1:].expand(missing, -1)))


def zero_rows(table: Tensor, new_length: int) -> Tensor:
    """Make a longer table whose new rows are zero, so that they add nothing.

    Args:
        table: (length, d_model).
        new_length: Number of rows, at least as many as there are.

    Returns:
        (new_length, d_model), in the dtype of ``table``.

    Raises:
        ValueError: If ``new_length`` is below the length of ``table``.
    """
    missing = _missing_rows(table, new_length)
    return torch.cat((table, table.new_zeros(missing, table.shape[1])))


def interpolate_rows(table: Tensor, new_length: int) -> Tensor:
    """Make a longer table by stretching this one along straight lines.

    First and last row are kept (torch's ``align_corners=True``) and the rest spread
    evenly between them, so every other row stands for a new position.

    Args:
        table: (length, d_model).
        new_length: Number of rows, at least as many as there are.

    Returns:
        (new_length, d_model), in the dtype of ``table``.

    Raises:
        ValueError: If ``new_length`` is below the length of ``table``.

    Example:
        >>> interpolate_rows(torch.tensor([[0.0], [1.0]]), 5).T
        tensor([[0.0000, 0.2500, 0.5000, 0.7500, 1.0000]])
    """
    _missing_rows(table, new_length)
    steps = max(new_length - 1, 1)
    place = torch.arange(new_length, device=table.device) * (len(table) - 1)
    lower, rest = place // steps, place % steps
    upper = (lower + 1).clamp(max=len(table) - 1)
    wide = table.to(torch.promote_types(table.dtype, torch.float32))
    share = (rest.to(wide.dtype) / steps).unsqueeze(-1)  # (new_length, 1)
    return torch.lerp(wide[lower], wide[upper], share).to(table.dtype)


def _missing_rows(table: Tensor, new_length: int) -> int:
    """Count the rows to add to (length, d_model); refuse to cut."""
    _require.at_least("new_length", new_length)
    if table.dim() != 2 or new_length < len(table):
        raise ValueError(
            f"new_length is {new_length} and the table {tuple(table.shape)}, but these "
            f"functions only lengthen a table (length, d_model). Use {len(table)} or "
            f"more, or table[:{new_length}] to cut."
        )
    return new_length - len(table)
