"""The process in which one submission runs: started anew for each, ended by force.

It is handed a job, runs the cells as a notebook would, tries each answer on drawn
inputs and writes what came out to a pipe, a line of JSON for each thing that happened.
What it writes is not believed: another process judges the numbers.
"""

import contextlib
import io
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

PRINTED = 3_000_000  # characters of one cell: more is a flood
TOLD = 300  # characters of an error


class OverTime(KeyboardInterrupt):
    """A cell or an answer has run for longer than its limit."""


class Flood(BaseException):
    """A cell prints without an end."""


class Sink(io.TextIOBase):
    """Swallow what is printed, up to a limit."""

    count = 0

    def write(self, text: str) -> int:
        """Count the characters, and raise Flood at too many."""
        self.count += len(text)
        if self.count > PRINTED:
            raise Flood
        return len(text)


def _limit(memory: int, seconds: int) -> None:
    """Bound what this process may take, where the system knows how.

    Args:
        memory: Bytes of address space.
        seconds: CPU time of the whole submission.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    wanted = {"AS": memory, "CPU": seconds, "CORE": 0, "FSIZE": 100_000_000}
    for name, value in wanted.items():
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


@contextlib.contextmanager
def _within(seconds: float):
    """Raise OverTime in what runs for longer; it may swallow that, our parent not."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def _over(number, frame):
        raise OverTime

    signal.signal(signal.SIGALRM, _over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _words(error: BaseException | None) -> str:
    """Put an error on one short line."""
    try:
        text = " ".join(f"{type(error).__name__}: {error}".split())
    except BaseException:  # whatever a class of the student's may raise
        text = type(error).__name__
    return text[:TOLD]


def run_cell(shell: Any, source: str, seconds: float) -> str:
    """Run one cell.

    Args: ``shell`` of IPython; ``source`` of the cell; ``seconds``, its limit.
    Returns: What went wrong, or an empty string.
    """
    sink = Sink()
    try:
        with (
            contextlib.redirect_stdout(sink),
            contextlib.redirect_stderr(sink),
            _within(seconds),
        ):
            result = shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
    except BaseException as unexpected:
        error = unexpected
    if isinstance(error, OverTime):
        return f"it ran for longer than {seconds:g} s"
    if isinstance(error, Flood):
        return f"it printed more than {PRINTED:,} characters"
    return "" if error is None else _words(error)


def _versions(shell: Any, sources: list[tuple[str, str]], job: dict) -> dict:
    """Run the cells, and keep each object that a name of an exercise was given."""
    found: dict[str, list] = {name: [] for name in job["exercises"]}
    for index, (role, source) in enumerate(sources):
        if index in job["skip"]:
            continue
        _tell(cell=index, role=role)
        fault = run_cell(shell, source, job["seconds"])
        if fault:
            _tell(fault=fault, cell=index, role=role)
        for name, kept in found.items():
            thing = shell.user_ns.get(name)
            if thing is not None and not any(thing is other for other in kept):
                kept.append(thing)
    return found


def _answers(found: dict[str, list], job: dict) -> None:
    """Try each answer, the last that is not an empty stub, and tell what came out."""
    for name, exercise in job["exercises"].items():
        if name in job["over"] or not found[name]:
            continue
        _tell(exercise=name)
        kept = None
        for thing in found[name][:-20:-1]:  # stubs are quick
            kept = _kept_of(name, thing, exercise, job["seconds"])
            if not re.search("not done yet", str(kept[0].get("fault", ""))):
                break
        _tell(exercise=name, collected=kept)


def _kept_of(name: str, answer: Any, exercise: dict, seconds: float) -> list[dict]:
    """Collect the results of one answer, within the limits."""
    from coursekit import checks

    try:
        with _within(seconds):  # checks says what an interrupted answer looks like
            return checks.collect(
                name, answer, exercise["seed"], **exercise["constants"]
            )
    except BaseException as error:
        return [{"fault": f"{name}: {_words(error)}"}]


def _tell(**message: Any) -> None:
    """Write one line to the pipe."""
    data = (json.dumps(message) + "\n").encode()
    while data:
        data = data[os.write(_PIPE, data) :]


_PIPE = -1


def main(job_file: str, pipe: str) -> None:
    """Run the job in a file; this process ends with it. Args: File; pipe, a number."""
    global _PIPE
    _PIPE = int(pipe)
    os.set_inheritable(_PIPE, False)
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    import torch
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from coursekit import checks  # noqa: F401 - before the student's code can hide it

    torch.set_num_threads(1)

    class _Shell(InteractiveShell):
        def enable_gui(self, gui=None):
            """Show no windows: %matplotlib inline is in many notebooks."""

    config = Config()
    config.HistoryManager.enabled = False
    shell = _Shell.instance(config=config)
    _limit(job["memory"], job["cpu"])
    _tell(ready=True)
    found = _versions(shell, job["cells"], job)
    _answers(found, job)
    _tell(end=True)
    os._exit(0)  # no exit handler, no thread of the student's


if __name__ == "__main__":
    main(*sys.argv[1:])
