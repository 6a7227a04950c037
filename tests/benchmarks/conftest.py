"""Keep the benchmarks, and the peers they import, out of the normal run."""

collect_ignore_glob = ["*.py"]  # a file named on the command line still runs
