"""What a published config.json says of its rotary frequencies, in our words."""

from collections.abc import Mapping
from typing import Any

NAMES = {  # keys of a rotary entry → the arguments of ours that they give
    "original_max_position_embeddings": "trained_length",
    "truncate": "rounded",
    "low_freq_factor": "low_factor",
    "high_freq_factor": "high_factor",
    "short_factor": "short",
    "long_factor": "long",
}
_COMMON = {"type", "rope_type", "rope_theta", "partial_rotary_factor", "finetuned"}
_FOREIGN = ("rope_ratio", "rope_pct", "use_dynamic_ntk", "global_rope_theta")


def read(
    config: Mapping[str, Any], *, kind: str | None = None
) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Read the entry of one kind of attention, and change nothing in ``config``.

    Read are ``rope_scaling`` or ``rope_parameters``, and beside them ``rope_theta``,
    ``partial_rotary_factor``, ``max_position_embeddings``, its ``original_``, the
    widths (DeepSeek's and Gemma 4's too), GPT-NeoX's and Gemma 3's older keys, and
    ``text_config``. A null counts as absent. No base is 10,000; no factor is 1, or in
    YaRN and LongRoPE the length / the original one. The trained length is the original
    one where given; transformers' dynamic NTK never heeds it.

    Args: ``config`` as ``json.load`` gives it; ``kind`` where each has its entry.
    Returns: The type; the keys that set something, by our names; all values, by these.

    Raises:
        ValueError: If ``kind`` does not pick an entry, or no width can be found.
    """
    config = _without_null("config", config)
    if "hidden_size" not in config and "text_config" in config:
        config = _without_null("text_config", config["text_config"])
    entry = _entry(config, kind)
    rope_type = entry.get("rope_type", entry.get("type", "default"))
    rope_type = "longrope" if rope_type == "su" else rope_type
    keys = {NAMES.get(key, key): key for key in entry if key not in _COMMON}
    found = _beside(config, entry) | {name: entry[key] for name, key in keys.items()}
    longest = config.get("max_position_embeddings")
    trained = found.get("trained_length", longest)
    trained = config.get("original_max_position_embeddings", trained)
    if trained is not None:
        found["trained_length"] = trained
    extended = rope_type in ("yarn", "longrope") and longest and trained
    found.setdefault("factor", max(longest / trained, 1.0) if extended else 1.0)
    share = 1.0 if rope_type == "proportional" else found["rotated_share"]
    found["dim"] = _turning(config, kind, share)
    return rope_type, keys | {key: key for key in _FOREIGN if config.get(key)}, found


def _beside(config: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Find the base and the share, which stand in the entry or beside it."""
    share = config.get("partial_rotary_factor", config.get("rotary_pct", 1.0))
    base = config.get("rope_theta", config.get("rotary_emb_base", 10_000.0))
    return {
        "rotated_share": entry.get("partial_rotary_factor", share),
        "base": entry.get("rope_theta", base),
    }


def _without_null(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a dictionary without the keys that are null."""
    if not isinstance(entry, Mapping):
        raise ValueError(
            f"{name} is {entry!r}, but it must be a dictionary, as json.load gives it. "
            f"Use config.to_dict() where a library made it an object."
        )
    return {key: value for key, value in entry.items() if value is not None}


def _entry(config: Mapping[str, Any], kind: str | None) -> dict[str, Any]:
    """Pick the rotary settings that hold for one ``kind`` of attention."""
    entry = config.get("rope_scaling") or config.get("rope_parameters") or {}
    entry = _without_null("rope_scaling", entry)
    nested = {key for key, value in entry.items() if isinstance(value, Mapping)}
    shared = {key: entry[key] for key in entry if key not in nested}
    kinds = {key: shared | _without_null(key, entry[key]) for key in sorted(nested)}
    if not kinds and "rope_local_base_freq" in config:  # Gemma 3 scales the full ones
        local = {"rope_theta": config["rope_local_base_freq"]}
        kinds = {"full_attention": shared, "sliding_attention": local}
    if kind not in (kinds or [None]):
        has = f"an entry for {' and '.join(kinds)}" if kinds else "one entry for all"
        raise ValueError(
            f"kind is {kind!r}, but the config has {has}. "
            f"Use kind={next(iter(kinds), None)!r}."
        )
    return kinds.get(kind, shared)


def _turning(config: Mapping[str, Any], kind: str | None, share: float) -> int:
    """Count the features of a head that turn."""
    width = config.get("head_dim")
    if width is None and "num_attention_heads" in config:
        width = config.get("hidden_size", 0) / config["num_attention_heads"]
    if kind == "full_attention":  # Gemma 4
        width = config.get("global_head_dim", width)
    whole = config.get("qk_rope_head_dim", config.get("rotary_dim"))  # DeepSeek; GPT-J
    if whole is None and not (width and width % 1 == 0 and 0 < share <= 1):
        raise ValueError(
            f"a head has {width} features of which the share {share} turns, but it "
            f"must be a whole number and a share above 0, at most 1. Add head_dim, or "
            f"hidden_size and num_attention_heads."
        )
    return int(width * share) if whole is None else whole
