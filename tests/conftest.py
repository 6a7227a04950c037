"""Settings for all tests: no screen, and the same examples in each run."""

import matplotlib
import matplotlib.pyplot as plt
import pytest
from hypothesis import settings

matplotlib.use("Agg")
settings.register_profile(
    "course", deadline=None, derandomize=True, database=None, max_examples=15
)
settings.load_profile("course")


@pytest.fixture
def own_figures():
    """Give a test the house style, and leave no figure and no setting behind."""
    from coursekit import plots

    with plt.rc_context():
        plots.use_house_style()
        yield
        plt.close("all")


# The benchmarks import peers that only the extra `bench` brings; a file of theirs that
# is named on the command line still runs.
collect_ignore_glob = ["benchmarks/*.py"]
