"""The course's notation in one place: symbol in formulas, name in code, shape."""

from typing import NamedTuple


class Entry(NamedTuple):
    """One name: its symbol in formulas, its shape or kind, and what it is."""

    symbol: str  # LaTeX without dollars, or "" where formulas do without it
    shape: str
    meaning: str


NOTATION: dict[str, Entry] = {
    # sizes
    "length": Entry("n", "a number", "tokens of a text"),
    "d_model": Entry("d", "a number", "features of a token"),
    "num_heads": Entry("H", "a number", "heads of a layer; divides d_model"),
    "head_dim": Entry("d", "a number", "features of one head"),
    "dim": Entry("d", "a number, even", "features that turn in pairs, of any kind"),
    # the walk
    "ids": Entry("", "(length,) or (batch, length)", "numbers of words"),
    "embeddings": Entry("X", "(length, d_model)", "a row for each token"),
    "positioned": Entry("e", "(length, d_model)", "embeddings past door 1"),
    "query": Entry("q", "(batch, heads, query, head_dim)", "what a token asks"),
    "key": Entry("k", "(batch, heads, key, head_dim)", "what a token is asked for"),
    "value": Entry("v", "(batch, heads, key, value_dim)", "what it hands over"),
    "x": Entry("x", "(batch, heads, length, head_dim)", "queries or keys alike"),
    "scores": Entry(r"q \cdot k/\sqrt d", "(batch, heads, query, key)", "scaled"),
    "bias": Entry("b", "(heads, query, key) or as scores", "added by door 3"),
    "mask": Entry("", "(query, key) bool", "True: may attend, or a real token"),
    "logits": Entry("S", "(batch, heads, query, key)", "scores + bias, masked"),
    "weights": Entry("A", "(batch, heads, query, key)", "softmax of the logits"),
    "output": Entry("f(X)", "(batch, heads, query, value_dim)", "weights · value"),
    # positions
    "positions": Entry("p, m, pos", "(length,) or (batch, length)", "from 0"),
    "query_positions": Entry("i, m", "(query,) or (batch, query)", "of the queries"),
    "key_positions": Entry("j, n", "(key,) or (batch, key)", "of the keys"),
    "offset": Entry("j - i", "a number", "key minus query: negative looks back"),
    "relative_position": Entry("j - i", "(query, key)", "offsets of all pairs"),
    "distance": Entry(r"\lvert i-j\rvert", "(query, key)", "an offset without sign"),
    # door 1 and door 2
    "base": Entry("10000", "a number", "settles how slow the last pair is"),
    "frequencies": Entry(r"\omega", "(dim / 2,)", "radians per position"),
    "wavelength": Entry(r"2\pi/\omega", "(dim / 2,)", "positions of a whole turn"),
    "angles": Entry(r"m\omega", "(length, dim / 2)", "radians"),
    "turns": Entry(r"e^{im\omega}", "(length, dim / 2) complex", "of query and key"),
    "table": Entry("a", "(rows, features)", "a formula's rows, or learned ones"),
    "rows": Entry("p", "(rows, d_model)", "a learned table of positions"),
    # door 3
    "clip": Entry("k", "a number", "offsets farther away share a row"),
    "num_buckets": Entry("", "a number", "of T5, for offsets"),
    "max_distance": Entry("", "a number", "where T5's logarithm ends"),
    "slopes": Entry("m_h", "(heads,)", "ALiBi's price of a step"),
    "rate": Entry("r_2", "(heads,)", "KERPLE's, inside the logarithm"),
    "u": Entry("u", "(heads, head_dim)", "Transformer-XL's query for all words"),
    "v": Entry("v", "(heads, head_dim)", "Transformer-XL's query for all offsets"),
    # longer texts
    "trained_length": Entry("L", "a number", "positions of the texts in training"),
    "factor": Entry("s", "a number", "how many times as long a text is read"),
    "attention_factor": Entry("", "a number", "on query and key, so squared in scores"),
    "scale_base": Entry("B", "a number", "xPos: positions of a whole damping"),
    "xpos_scales": Entry(r"\zeta^{m/B}", "(length, dim / 2)", "xPos: the damping"),
}


def notation_table() -> str:
    """Write the table in Markdown, a line for each name.

    Returns:
        The rows with their heading.
    """
    lines = ["| symbol | name | shape | |", "| --- | --- | --- | --- |"]
    for name, (symbol, shape, meaning) in NOTATION.items():
        formula = f"${symbol}$" if symbol else ""
        lines.append(f"| {formula} | `{name}` | {shape} | {meaning} |")
    return "\n".join(lines)
