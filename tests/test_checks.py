"""Each check accepts right answers in other words, and names each typical slip."""

import math

import numpy as np
import pytest
import torch

from coursekit import checks
from coursekit.attention import attention, causal_mask
from coursekit.rope import apply_rope
from coursekit.sinusoidal import (
    pair_frequencies,
    position_angles,
    shift_matrix,
    sinusoidal_encoding,
)


def encoding_by_loops(positions, d_model):
    rows = []
    for p in positions.tolist():
        angles = [p / 10_000 ** (2 * (i // 2) / d_model) for i in range(d_model)]
        rows.append(
            [math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)]
        )
    return torch.tensor(rows)


def encoding_by_numpy(positions, d_model):
    exponents = np.arange(0, d_model, 2) / d_model
    angles = positions.numpy()[:, None] * np.exp(-np.log(10_000.0) * exponents)
    table = np.empty((len(positions), d_model))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def encoding_by_complex_numbers(positions, d_model):
    turns = torch.polar(
        torch.ones(len(positions), d_model // 2, dtype=torch.float64),
        torch.outer(positions.double(), pair_frequencies(d_model)),
    )
    return torch.stack((turns.imag, turns.real), -1).flatten(1)


def frequencies_slip(dim, *, base=1e4, power=1.0, minus=0):
    return base ** (-power * torch.arange(dim // 2).double() / (dim / 2 - minus))


def table_of(positions, frequencies):
    angles = torch.outer(positions.double(), frequencies)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


def own_exponents(positions, d_model):
    exponent = torch.arange(d_model).double() / d_model
    angles = torch.outer(positions.double(), 1e4**-exponent)
    columns = torch.arange(d_model)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


def blocks_first(positions, d_model):
    table = sinusoidal_encoding(positions, d_model)
    return torch.cat((table[:, 0::2], table[:, 1::2]), -1)


def swapped(positions, d_model):
    table = sinusoidal_encoding(positions, d_model)
    return table.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)


def manual_attention(query, key, value):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(query.shape[-1])
    return torch.einsum("bhqk,bhkd->bhqd", torch.softmax(scores, -1), value)


def turned(x, positions, base=10_000.0):
    return apply_rope(x, position_angles(positions, x.shape[-1], base))


def rope_by_complex_numbers(x, positions):
    angles = torch.outer(positions.double(), pair_frequencies(x.shape[-1]))
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)


def rope_by_loops(x, positions):
    result, dim = x.clone(), x.shape[-1]
    for row, position in enumerate(positions.tolist()):
        for pair in range(dim // 2):
            angle = position * 10_000 ** (-2 * pair / dim)
            a, b = x[row, 2 * pair].item(), x[row, 2 * pair + 1].item()
            result[row, 2 * pair] = a * math.cos(angle) - b * math.sin(angle)
            result[row, 2 * pair + 1] = a * math.sin(angle) + b * math.cos(angle)
    return result


def rope_by_halves(x, positions, mixed):
    angles = position_angles(positions, x.shape[-1])
    angles = angles.repeat_interleave(2, -1) if mixed else angles.repeat(1, 2)
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat((-second, first), -1) * angles.sin()


RIGHT = {
    "check_attention": [
        lambda q, k, v: attention(q, k, v).output,
        manual_attention,
        torch.nn.functional.scaled_dot_product_attention,
    ],
    "check_causal_mask": [
        causal_mask,
        lambda q, k: q[:, None] >= k[None, :],
        lambda q, k: torch.tensor([[bool(b <= a) for b in k] for a in q]),
    ],
    "check_pair_frequencies": [
        pair_frequencies,
        lambda d: torch.exp(-math.log(10_000) * torch.arange(0, d, 2) / d),
        lambda d: [10_000 ** (-2 * i / d) for i in range(d // 2)],
    ],
    "check_sinusoidal_encoding": [
        sinusoidal_encoding,
        encoding_by_loops,
        encoding_by_numpy,
        encoding_by_complex_numbers,
    ],
    "check_shift_matrix": [
        shift_matrix,
        lambda o, d: (
            torch.linalg.lstsq(
                sinusoidal_encoding(torch.arange(300).double(), d),
                sinusoidal_encoding(torch.arange(300).double() + o, d),
            ).solution.T
        ),
        lambda o, d: torch.block_diag(
            *[
                torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])
                for a in (o * pair_frequencies(d)).tolist()
            ]
        ),
    ],
}

RIGHT["check_apply_rope"] = [
    lambda x, p: apply_rope(x, position_angles(p, x.shape[-1])),
    rope_by_complex_numbers,
    rope_by_loops,
]

SLIPS = [
    ("check_apply_rope", "clockwise", lambda x, p: turned(x, -p)),
    ("check_apply_rope", "position 0 moved", lambda x, p: turned(x, p + 1)),
    (
        "check_apply_rope",
        "Have cosine and sine changed places",
        lambda x, p: apply_rope(x, math.pi / 2 - position_angles(p, x.shape[-1])),
    ),
    ("check_apply_rope", "1000", lambda x, p: turned(x, p, base=1_000.0)),
    (
        "check_apply_rope",
        "from 0 again",
        lambda x, p: turned(x, torch.arange(len(p)) * (p[-1] > 0)),
    ),
    ("check_apply_rope", "i \\+ head_dim/2", lambda x, p: rope_by_halves(x, p, False)),
    ("check_apply_rope", "no rotation", lambda x, p: rope_by_halves(x, p, True)),
    ("check_attention", "not divided", lambda q, k, v: (q @ k.mT).softmax(-1) @ v),
    (
        "check_attention",
        "square root",
        lambda q, k, v: (q @ k.mT / q.shape[-1]).softmax(-1) @ v,
    ),
    (
        "check_attention",
        "multiplied by",
        lambda q, k, v: (q @ k.mT * q.shape[-1] ** 0.5).softmax(-1) @ v,
    ),
    (
        "check_attention",
        "over the queries",
        lambda q, k, v: (q @ k.mT * q.shape[-1] ** -0.5).softmax(-2) @ v,
    ),
    (
        "check_attention",
        "over the heads",
        lambda q, k, v: (q @ k.mT * q.shape[-1] ** -0.5).softmax(1) @ v,
    ),
    (
        "check_attention",
        "softmax is missing",
        lambda q, k, v: q @ k.mT * q.shape[-1] ** -0.5 @ v,
    ),
    ("check_causal_mask", "other way round", lambda q, k: ~causal_mask(q, k)),
    ("check_causal_mask", "does not see itself", lambda q, k: k < q[:, None]),
    ("check_causal_mask", "into the future", lambda q, k: k >= q[:, None]),
    (
        "check_causal_mask",
        "not indices",
        lambda q, k: torch.ones(len(q), len(k), dtype=torch.bool).tril(),
    ),
    (
        "check_causal_mask",
        "Nothing is blocked",
        lambda q, k: torch.ones(len(q), len(k), dtype=torch.bool),
    ),
    ("check_causal_mask", "boolean", lambda q, k: causal_mask(q, k).float()),
    ("check_pair_frequencies", "1000", lambda d: frequencies_slip(d, base=1e3)),
    ("check_pair_frequencies", "doubled", lambda d: frequencies_slip(d, power=2)),
    ("check_pair_frequencies", "halved", lambda d: frequencies_slip(d, power=0.5)),
    ("check_pair_frequencies", "minus sign", lambda d: frequencies_slip(d, power=-1)),
    ("check_pair_frequencies", "d/2 - 1", lambda d: frequencies_slip(d, minus=1)),
    (
        "check_sinusoidal_encoding",
        "1000",
        lambda p, d: sinusoidal_encoding(p, d, base=1_000.0),
    ),
    (
        "check_sinusoidal_encoding",
        "doubled",
        lambda p, d: table_of(p, frequencies_slip(d, power=2)),
    ),
    (
        "check_sinusoidal_encoding",
        "minus sign",
        lambda p, d: table_of(p, frequencies_slip(d, power=-1)),
    ),
    (
        "check_sinusoidal_encoding",
        "d/2 - 1",
        lambda p, d: table_of(p, frequencies_slip(d, minus=1)),
    ),
    ("check_sinusoidal_encoding", "own exponent", own_exponents),
    ("check_sinusoidal_encoding", "all sines", blocks_first),
    ("check_sinusoidal_encoding", "changed places", swapped),
    (
        "check_sinusoidal_encoding",
        "from 0 again",
        lambda p, d: sinusoidal_encoding(torch.arange(len(p)), d),
    ),
    (
        "check_sinusoidal_encoding",
        "count from 1",
        lambda p, d: sinusoidal_encoding(p + 1, d),
    ),
    (
        "check_sinusoidal_encoding",
        "radians",
        lambda p, d: sinusoidal_encoding(torch.deg2rad(p.double()), d),
    ),
    (
        "check_sinusoidal_encoding",
        "order of the axes",
        lambda p, d: sinusoidal_encoding(p, d).T,
    ),
    ("check_shift_matrix", "backwards", lambda o, d: shift_matrix(-o, d)),
    ("check_shift_matrix", "identity", lambda o, d: torch.eye(d)),
    ("check_shift_matrix", "by one position", lambda o, d: shift_matrix(1, d)),
    ("check_shift_matrix", "lost its minus", lambda o, d: shift_matrix(o, d).abs()),
    (
        "check_shift_matrix",
        "i \\+ d_model/2",
        lambda o, d: shift_matrix(o, d)[halves(d)][:, halves(d)],
    ),
]

STRANGE = [
    ("function is checked", None),
    ("function is checked", "sinusoid"),
    ("not done yet", lambda *_: (_ for _ in ()).throw(NotImplementedError())),
    ("stopped with ZeroDivisionError", lambda *_: 1 / 0),
    ("stopped with TypeError", lambda: 0),
    ("Is there a return", lambda *_: None),
    ("Is there a return", lambda *_: "table"),
    ("shape", lambda *_: torch.zeros(3)),
    ("shape", lambda *_: 7),
]


def halves(d):
    return torch.cat((torch.arange(0, d, 2), torch.arange(1, d, 2)))


@pytest.mark.parametrize("check", RIGHT)
def test_right_answers_in_other_words_are_accepted(check, capsys):
    for answer in RIGHT[check]:
        for _ in range(3):
            getattr(checks, check)(answer)
            line = capsys.readouterr().out
            assert line.startswith(f"✓ {check.removeprefix('check_')}: ")
            assert line.count("\n") == 1


@pytest.mark.parametrize(("check", "hint", "answer"), SLIPS)
def test_a_slip_is_refused_with_its_own_hint(check, hint, answer):
    for _ in range(5):
        with pytest.raises(checks.CheckFailed, match=hint):
            getattr(checks, check)(answer)


@pytest.mark.parametrize("check", RIGHT)
@pytest.mark.parametrize(("hint", "answer"), STRANGE)
def test_a_strange_answer_gets_a_plain_line(check, hint, answer):
    with pytest.raises(checks.CheckFailed, match=hint) as failure:
        getattr(checks, check)(answer)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("check", RIGHT)
def test_values_that_are_not_finite_are_named(check):
    def answer(*inputs):
        got = torch.as_tensor(RIGHT[check][0](*inputs))
        return torch.full_like(got.double(), torch.nan)

    wanted = "boolean" if check == "check_causal_mask" else "NaN"
    with pytest.raises(checks.CheckFailed, match=wanted):
        getattr(checks, check)(answer)


@pytest.mark.parametrize("check", RIGHT)
def test_a_small_error_in_one_place_is_found_and_shown(check):
    def answer(*inputs):
        got = torch.as_tensor(RIGHT[check][0](*inputs)).clone()
        flat = got.view(-1)
        flat[-1] = ~flat[-1] if got.dtype == torch.bool else flat[-1] + 0.01
        return got

    told = "was expected. Compare a small case|position 0 moved"
    with pytest.raises(checks.CheckFailed, match=told):
        getattr(checks, check)(answer)


def test_an_answer_that_needs_gradients_is_accepted():
    scale = torch.ones((), requires_grad=True)
    checks.check_sinusoidal_encoding(lambda p, d: sinusoidal_encoding(p, d) * scale)


def test_a_table_learned_by_heart_does_not_pass():
    checks.check_shift_matrix(shift_matrix)
    fixed = shift_matrix(2, 6)
    refused = 0
    for _ in range(20):
        try:
            checks.check_shift_matrix(lambda offset, d_model: fixed)
        except checks.CheckFailed:
            refused += 1
    assert refused >= 15  # one draw in 35 happens to ask for this very table


def test_a_check_leaves_the_learners_random_state_alone():
    torch.manual_seed(3)
    want = torch.rand(4)
    torch.manual_seed(3)
    checks.check_sinusoidal_encoding(sinusoidal_encoding)
    assert torch.equal(torch.rand(4), want)


def test_a_refusal_shows_one_line_in_a_notebook():
    shown = checks.CheckFailed("attention: wrong")._render_traceback_()
    assert shown == ["✗ attention: wrong"]


def test_an_answer_may_work_in_place_without_changing_the_oracle():
    def scaled_in_place(query, key, value):
        return (query.div_(query.shape[-1] ** 0.5) @ key.mT).softmax(-1) @ value

    def emptied(query, key, value):
        return query.zero_() @ key.zero_().mT @ value.zero_()

    def from_zero(positions, d_model):
        return sinusoidal_encoding(positions.sub_(positions[0].item()), d_model)

    checks.check_attention(scaled_in_place)
    with pytest.raises(checks.CheckFailed):
        checks.check_attention(emptied)
    with pytest.raises(checks.CheckFailed, match="from 0 again"):
        checks.check_sinusoidal_encoding(from_zero)


def test_a_mask_by_index_does_not_pass_for_one_by_position():
    def by_index(queries, keys):
        ones = torch.ones(len(queries), len(keys), dtype=torch.bool)
        return ones.tril(len(keys) - len(queries))

    with pytest.raises(checks.CheckFailed, match="repeats and gaps"):
        checks.check_causal_mask(by_index)


@pytest.mark.parametrize(
    "positions_of",
    [lambda p: torch.arange(len(p)) + p[0], lambda p: p.sort().values],
)
def test_positions_must_be_used_as_they_are_given(positions_of):
    with pytest.raises(checks.CheckFailed, match="positions that are given"):
        checks.check_sinusoidal_encoding(
            lambda p, d: sinusoidal_encoding(positions_of(p), d)
        )


def test_two_calls_of_a_check_draw_other_inputs():
    seen = []

    def watch(offset, d_model):
        seen.append((offset, d_model))
        return shift_matrix(offset, d_model)

    for _ in range(20):
        checks.check_shift_matrix(watch)
    assert len(set(seen)) > 5


def test_complex_numbers_and_steps_of_attention_are_understood():
    with pytest.raises(checks.CheckFailed, match="real numbers were expected"):
        checks.check_attention(lambda q, k, v: attention(q, k, v).output + 1j)
    checks.check_attention(attention)


def test_an_error_of_a_thousandth_is_refused():
    with pytest.raises(checks.CheckFailed):
        checks.check_sinusoidal_encoding(lambda p, d: sinusoidal_encoding(p, d) + 1e-3)
