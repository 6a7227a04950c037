"""How long each control of the notebooks takes to answer: compute, draw, render.

CPU time of this thread, the least of several answers for each value; what the browser
needs to show a picture of some ten kilobytes comes on top. A busy machine slows all of
it: an empty figure of two panels, the yardstick, is timed beside.
"""

import io
import time
from itertools import product

import matplotlib.pyplot as plt
import pytest
from control_cells import LESSONS, answers, run_controls

from coursekit import plots

pytestmark = pytest.mark.filterwarnings("default")
MARK = 150  # ms
MOVES = 24  # at most so many values of a control, spread over all


def least(function, *given, repeats=7):
    """Return the least CPU time of some calls; the first one warms the caches."""
    function(*given)
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        function(*given)
        times.append(time.thread_time() - start)
    return min(times)


def yardstick():
    """Draw and render two empty panels."""
    figure, _ = plt.subplots(1, 2, figsize=(9.8, 3.4), layout="none")
    figure.savefig(io.BytesIO(), format="png", pil_kwargs={"compress_level": 1})
    plt.close(figure)


def drawn(draw, values):
    """Draw without rendering."""
    plt.close(draw(**values))


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_move_is_answered_in_150_ms(path, capsys):
    with plt.rc_context():
        plots.use_house_style()
        for draw, choices in run_controls(path):
            picture = answers(draw, choices)
            rows = list(product(*choices.values()))
            rows = rows[:: -(-len(rows) // MOVES)]
            moves = [dict(zip(choices, row, strict=True)) for row in rows]
            compute = max(least(drawn, draw, values) for values in moves)
            whole = [1e3 * least(picture, values) for values in moves]
            with capsys.disabled():
                print(
                    f"\n{path.stem}: {draw.__name__}({', '.join(choices)}) answers in "
                    f"{min(whole):.0f} to {max(whole):.0f} ms; draw alone takes up to "
                    f"{1e3 * compute:.0f}, the yardstick {1e3 * least(yardstick):.0f}"
                )
            assert max(whole) <= MARK
