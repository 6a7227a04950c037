"""Start a worker apart from everything else, watch it, and end it by force."""

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

GRACE = 5.0  # seconds past its own limit until a worker is ended
START = 60.0  # seconds to import torch, on a busy machine
WRITTEN = 100_000_000  # bytes on the pipe: the results of a notebook take 0.1 million
DISK = 200_000_000  # bytes that one submission may write, in memory
INSIDE = "/sandbox"  # where it may write
READABLE = ("/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
STOP = threading.Event()  # set: all workers are ended at once


class Stopped(Exception):
    """The grader was interrupted; this submission is not graded."""


class NotStarted(Exception):
    """No worker could be started: a fault of this machine, not of a student."""


class Limits(NamedTuple):
    """What one submission may take."""

    seconds: float = 20.0  # of one cell, and of one answer
    total: float = 300.0  # of all of it
    memory: int = 6_000_000_000  # bytes of address space; torch alone takes over 1


def bubblewrap() -> list[str]:
    """Return the command that a worker is wrapped in, or nothing where it is missing.

    Returns:
        A bwrap command: nobody's rights, no network, no other processes, a read-only
        system without homes. Empty if bwrap is not installed or may not run.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return []
    command = [bwrap, "--unshare-all", "--die-with-parent", "--new-session"]
    command += ["--uid", "65534", "--gid", "65534", "--dev", "/dev", "--proc", "/proc"]
    command += ["--size", str(DISK), "--tmpfs", INSIDE, "--chdir", INSIDE]
    package = Path(__file__).resolve().parents[1]
    for place in dict.fromkeys((*READABLE, sys.base_prefix, sys.prefix, package)):
        command += ["--ro-bind-try", str(place), str(place)]
    tried = subprocess.run(
        [*command, sys.executable, "-c", ""],
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    return command if tried.returncode == 0 else []


def watched(
    job: dict, limits: Limits, end: float, wrap: list[str]
) -> tuple[list[dict], str]:
    """Run one worker in a folder of its own, and leave nothing of it.

    Args:
        job: What ``worker`` reads.
        limits: Of time and memory.
        end: When all of the submission must be over, in ``time.monotonic``.
        wrap: From ``bubblewrap``.

    Returns:
        Its messages, and why it had to end, or an empty string.

    Raises:
        Stopped: If ``STOP`` was set meanwhile.
    """
    name = tempfile.mkdtemp(prefix="coursekit-")
    try:
        os.chmod(name, 0o755)
        place = Path(name, "job.json")
        place.write_text(json.dumps(job), encoding="utf-8")
        place.chmod(0o644)
        reading, writing = os.pipe()
        try:
            process = _started(place, writing, wrap)
        finally:
            os.close(writing)
        try:
            most = 10_000 + 4 * len(job["cells"])
            return _read(reading, most, limits, end)
        finally:
            _end(process)
            os.close(reading)
    finally:
        with contextlib.suppress(Exception):  # a maze of folders, for instance
            shutil.rmtree(name, ignore_errors=True)


def _started(place: Path, writing: int, wrap: list[str]) -> subprocess.Popen:
    """Start a worker in a folder of its own."""
    inside = Path(INSIDE) if wrap else place.parent
    worker = [sys.executable, "-m", "coursekit.classroom.worker"]
    worker += ["/job.json" if wrap else str(place), str(writing)]
    if wrap:  # what it writes is gone with it
        worker = [*wrap, "--ro-bind", str(place), "/job.json", "--", *worker]
    elif os.name == "posix":
        # Between us and it stands a shell: a worker that ends its parent ends that.
        worker = ["/bin/sh", "-c", '"$@" & wait $!', "sh", *worker]
    variables = {"HOME": str(inside), "TMPDIR": str(inside), "MPLBACKEND": "Agg"}
    variables |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "LANG": "C.UTF-8"}
    variables |= {"IPYTHONDIR": str(inside / "ipython"), "PYTHONHASHSEED": "0"}
    variables |= {"MPLCONFIGDIR": str(inside), "PYTHONDONTWRITEBYTECODE": "1"}
    variables |= {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    variables |= {"PIP_NO_INDEX": "1", "PIP_RETRIES": "0"}  # %pip changes nothing here
    kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
    variables |= {k: os.environ[k] for k in kept if k in os.environ}
    return subprocess.Popen(
        worker,
        cwd=place.parent,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(writing,),
        start_new_session=True,
    )


def _read(
    reading: int, most: int, limits: Limits, end: float
) -> tuple[list[dict], str]:
    """Read messages until the end, a limit, or the death of the worker."""
    messages: list[dict] = []
    rest, count, until = b"", 0, time.monotonic() + START
    with selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        while True:
            heard = selector.select(0.5)
            if STOP.is_set():
                raise Stopped
            if time.monotonic() > min(until, end):
                return messages, f"it ran for longer than {limits.seconds:g} s"
            if not heard:
                continue
            data = os.read(reading, 1 << 20)
            count += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                message: Any = None
                with contextlib.suppress(ValueError, RecursionError):
                    message = json.loads(line)
                if isinstance(message, dict):
                    messages.append(message)
                    until = time.monotonic() + limits.seconds + GRACE
                    if "end" in message:
                        return messages, ""
            if not data:
                return messages, "it ended the kernel, or ran out of memory"
            if count > WRITTEN or len(messages) > most:
                return messages, "it wrote to the grader"


def _end(process: subprocess.Popen) -> None:
    """End a worker and all that it started and that can still be found."""
    family = []
    with contextlib.suppress(Exception):
        import psutil

        family = psutil.Process(process.pid).children(recursive=True)
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(process.pid, 9)
    for one in (process, *family):
        with contextlib.suppress(Exception):
            one.kill()
    process.wait()
