"""Read the golden numbers: what other libraries computed, and how close to be."""

import json
from pathlib import Path

import numpy as np
import torch

HOME = {
    "attention": "attention",
    "sin_interleaved": "sinusoidal",
    "sin_interleaved_rows": "sinusoidal",
    "sin_interleaved_odd": "sinusoidal",
    "sin_interleaved_base": "sinusoidal",
    "sin_interleaved_offset": "sinusoidal",
    "sin_concat": "sinusoidal",
    "sin_concat_scaled": "sinusoidal",
    "sin_t2t": "sinusoidal",
    "sin_t2t_whisper": "sinusoidal",
    "pos_ids_left_pad": "position",
    "pos_ids_opt": "position",
    "pos_ids_roberta": "position",
    "learned": "learned",
    "t5_bucket": "relative",
    "t5_bias": "relative",
    "shaw_index": "relative",
    "shaw_logits": "relative",
    "speecht5_index": "relative",
    "deberta_bucket": "relative",
    "rel_shift": "relative",
    "rope_half": "rope",
    "rope_interleaved": "rope",
    "rope_half_partial": "rope",
    "rope_interleaved_partial": "rope",
    "rope_cos_sin_bf16": "rope",
    "xpos_interleaved": "rope",
    "alibi_slopes": "alibi",
    "alibi_mpt": "alibi",
    "alibi_bloom": "alibi",
    "alibi_full": "alibi",
    "rope_scaling": "context_extension",
    "rope_scaled_half": "context_extension",
}
"""The module whose test holds each group. It asks for all of them at once."""

_FILE = Path(__file__).parent / "golden" / "golden_public.json"


def all_entries():
    """Return every entry of the file, in its order."""
    return json.loads(_FILE.read_text(encoding="utf-8"))["entries"]


def group_of(entry):
    """Return the part of the id before the slash."""
    return entry["id"].split("/")[0]


def entries_of(module):
    """Return as test parameters all entries whose group has its home in ``module``."""
    import pytest

    held = [entry for entry in all_entries() if HOME[group_of(entry)] == module]
    return [pytest.param(entry, id=entry["id"]) for entry in held]


def wave(shape, a, b):
    """Return the input tensor of the file's formula: float32 of sin(a·n + b)."""
    n = np.arange(int(np.prod(shape)), dtype=np.float64)
    return torch.from_numpy(np.sin(a * n + b).reshape(shape).astype(np.float32))


def expected(entry, name):
    """Return one named output of an entry as a tensor."""
    out = entry["out"][name]
    array = np.array(out["data"], dtype=out["dtype"]).reshape(out["shape"])
    return torch.from_numpy(array)


def assert_met(entry, name, mine):
    """Hold ``mine`` to an entry, with the tolerance of the entry and its shape."""
    want = expected(entry, name)
    assert mine.shape == want.shape
    gap = (mine.double() - want.double()).abs()
    allowed = entry["atol"] + entry.get("rtol", 0) * want.double().abs()
    assert (gap <= allowed).all(), f"{entry['id']}: off by {gap.max().item()}"
