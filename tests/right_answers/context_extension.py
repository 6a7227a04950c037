"""Right answers of the stem context_extension, in other words."""

import math

import numpy as np
import torch


def dynamic_by_loops(lengths, dim, base, factor, trained_length):
    rows = []
    for length in lengths:
        new = base
        if length > trained_length:
            alpha = factor * length / trained_length - (factor - 1)
            new = base * alpha ** (dim / (dim - 2))
        rows.append([new ** (-2 * i / dim) for i in range(dim // 2)])
    return rows


def dynamic_by_numpy(lengths, dim, base, factor, trained_length):
    beyond = np.maximum(np.array(lengths), trained_length) / trained_length - 1
    new = base * (1 + factor * beyond) ** (dim / (dim - 2))
    return new[:, None] ** (-np.arange(0, dim, 2) / dim)


def dynamic_by_logarithms(lengths, dim, base, factor, trained_length):
    beyond = (torch.tensor(lengths, dtype=torch.float32) / trained_length - 1).relu()
    place = torch.arange(dim // 2) / (dim // 2 - 1)  # first pair 0, last 1
    slower = torch.outer(torch.log1p(factor * beyond), place)
    plain = math.log(base) * torch.arange(0, dim, 2) / dim
    return torch.exp(-plain - slower)


def yarn_by_loops(dim, trained_length, base, factor):
    def pair(turns):
        ratio = trained_length / (turns * 2 * math.pi)
        return dim * math.log(ratio) / (2 * math.log(base))

    low, high = math.floor(pair(32)), math.ceil(pair(1))
    found = []
    for i in range(dim // 2):
        plain = base ** (-2 * i / dim)
        ramp = min(1.0, max(0.0, (i - low) / (high - low)))
        found.append(plain / factor * ramp + plain * (1 - ramp))
    return found


def yarn_by_numpy(dim, trained_length, base, factor):
    turns = trained_length / (2 * np.pi * np.array([32.0, 1.0]))
    low, high = np.log(turns) / np.log(base) * dim / 2
    index = np.arange(dim // 2)
    ramp = np.interp(index, [np.floor(low), np.ceil(high)], [1, 1 / factor])
    return (np.float64(base) ** (-2 * index / dim) * ramp).astype(np.float32)


def yarn_as_in_gpt_oss(dim, trained_length, base, factor):
    half = dim / 2
    low = half * math.log(trained_length / (32 * 2 * math.pi)) / math.log(base)
    high = half * math.log(trained_length / (1 * 2 * math.pi)) / math.log(base)
    period = base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim)
    ramp = (torch.arange(half, dtype=torch.float32) - low) / (high - low)
    mask = 1 - ramp.clamp(0, 1)
    return 1.0 / (factor * period) * (1 - mask) + 1.0 / period * mask


def yarn_as_in_the_paper(dim, trained_length, base, factor):
    speeds = base ** (-torch.arange(0, dim, 2).double() / dim)
    turns = trained_length / (2 * torch.pi / speeds)
    kept = ((turns - 1) / (32 - 1)).clamp_(0, 1)
    return torch.lerp(speeds / factor, speeds, kept).requires_grad_()


def scores_by_both_sides(query, key, factor, growth):
    once = growth * math.log(factor) + 1
    query *= once
    key *= once
    return query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5


def scores_by_einsum(query, key, factor, growth):
    temperature = (growth * math.log(factor) + 1) ** -2
    width = query.shape[-1]
    return torch.einsum("hqd,hkd->hqk", query, key) / (temperature * math.sqrt(width))


def scores_by_loops(query, key, factor, growth):
    once, root = 1 + growth * np.log(factor), len(query[0, 0]) ** 0.25
    return [
        [
            [
                sum(
                    once / root * a * b * once / root for a, b in zip(q, k, strict=True)
                )
                for k in keys
            ]
            for q in queries
        ]
        for queries, keys in zip(query.tolist(), key.tolist(), strict=True)
    ]


def configs_by_steps(configs, default_base):
    rows = []
    for config in configs:
        config = {key: value for key, value in config.items() if value is not None}
        entry = config.get("rope_scaling", config.get("rope_parameters", {}))
        width = config["hidden_size"] / config["num_attention_heads"]
        share = config.get("partial_rotary_factor", 1)
        share = entry.get("partial_rotary_factor", share)
        width = config.get("head_dim", width) * share
        longest = config["max_position_embeddings"]
        trained = config.get("original_max_position_embeddings", longest)
        trained = entry.get("original_max_position_embeddings", trained)
        kind = entry.get("rope_type", entry.get("type"))
        factor = longest / trained if kind == "yarn" else 1
        factor = entry.get("factor", factor)
        base = entry.get("rope_theta", config.get("rope_theta", default_base))
        rows.append([width, base, factor, trained])
    return rows


def configs_laid_flat(configs, default_base):
    def row(config):
        flat = {**config, **(config.get("rope_scaling") or {})}
        flat |= config.get("rope_parameters") or {}
        trained = flat.get("original_max_position_embeddings")
        trained = trained or flat["max_position_embeddings"]
        width = flat.get("head_dim") or (
            flat["hidden_size"] // flat["num_attention_heads"]
        )
        return [
            int(width * flat.get("partial_rotary_factor", 1.0)),
            flat.get("rope_theta") or default_base,
            flat.get("factor", flat["max_position_embeddings"] / trained),
            trained,
        ]

    return np.array([row(config) for config in configs], dtype=np.float64)


def configs_by_search(configs, default_base):
    def search(thing, name):
        if isinstance(thing, dict):
            if thing.get(name) is not None:
                return thing[name]
            found = (search(inner, name) for inner in thing.values())
            return next((value for value in found if value is not None), None)
        return None

    result = torch.empty(len(configs), 4)
    for row, config in zip(result, configs, strict=True):
        shared = config["hidden_size"] / config["num_attention_heads"]
        longest = search(config, "max_position_embeddings")
        trained = search(config, "original_max_position_embeddings") or longest
        row[0] = search(config, "head_dim") or shared
        row[0] *= search(config, "partial_rotary_factor") or 1
        row[1] = search(config, "rope_theta") or default_base
        row[2] = search(config, "factor") or longest / trained
        row[3] = trained
    return result


def base_by_formula(dim, base, factor):
    return round(base * factor ** (dim / (dim - 2)))


def base_by_bisection(dim, base, factor):
    def answer():
        wanted = base ** (-(dim - 2) / dim) / factor
        low, high = base, base * factor**2
        while high / low > 1 + 1e-9:
            middle = math.sqrt(low * high)
            if middle ** (-(dim - 2) / dim) > wanted:
                low = middle
            else:
                high = middle
        return high

    return answer


def base_by_wavelengths(dim, base, factor):
    longest = factor * base ** (1 - 2 / dim)
    return torch.tensor(longest).log().div(1 - 2 / dim).exp()


RIGHT = {
    "dynamic_frequencies": (dynamic_by_loops, dynamic_by_numpy, dynamic_by_logarithms),
    "yarn_frequencies": (
        yarn_by_loops,
        yarn_by_numpy,
        yarn_as_in_gpt_oss,
        yarn_as_in_the_paper,
    ),
    "yarn_scores": (scores_by_both_sides, scores_by_einsum, scores_by_loops),
    "read_configs": (configs_by_steps, configs_laid_flat, configs_by_search),
    "matching_base": (base_by_formula, base_by_bisection, base_by_wavelengths),
}
