"""Settings for all tests: no screen, and the same examples in each run."""

import matplotlib
from hypothesis import settings

matplotlib.use("Agg")
settings.register_profile(
    "course", deadline=None, derandomize=True, database=None, max_examples=15
)
settings.load_profile("course")

# The benchmarks import peers that only the extra `bench` brings; a file of theirs that
# is named on the command line still runs.
collect_ignore_glob = ["benchmarks/*.py"]
