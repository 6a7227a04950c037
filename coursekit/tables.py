"""A position table that a real model learned."""

import io

import numpy as np
import torch
from torch import Tensor

from coursekit import _shipped

_SHA256 = "663d22a88629862b8633dc2d0af597b5c572a4816a347708dfdb5d39cdc27793"


def minilm_table() -> Tensor:
    """Load the learned positions of all-MiniLM-L6-v2, a small sentence encoder.

    They are kept as float16, which moves no number by more than 0.0001. Source,
    licence and hash stand in ``coursekit/data/README.md``.

    Returns:
        (512, 384) float32, one row per position.

    Raises:
        ValueError: If the file is missing or not the one that was shipped.

    Source: Reimers and Gurevych 2019, arXiv:1908.10084; Wang et al. 2020, MiniLM,
    arXiv:2002.10957.
    """
    data = _shipped.read("minilm_positions.npz", _SHA256)
    with np.load(io.BytesIO(data)) as arrays:
        return torch.from_numpy(arrays["table"]).float()
