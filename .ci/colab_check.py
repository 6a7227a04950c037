"""Run every notebook as Google Colab does: its versions, its format, nothing beside it.

A new virtual environment gets what Colab has preloaded (constraints-colab.txt). The
course is stamped as if it had been released, on a copy, and packed as the archive of
its tag; the address in the copies leads to that archive. Each notebook is saved in the
format that Colab writes, put alone into an empty folder, and run from top to bottom:
its own first cell installs the course. Any error fails, and so does a notebook whose
first cell did not tell the versions.

    python .ci/colab_check.py [notebook ...] [--jobs 2] [--environment FOLDER]
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CONSTRAINTS = REPOSITORY / "constraints-colab.txt"
SLUG = "owner/course"
PRELOADED = ("torch", "numpy", "matplotlib", "tqdm", "ipykernel", "ipython")
PRELOADED += ("ipywidgets", "notebook", "nbclient", "nbformat", "pip")
SECONDS = 600  # for one notebook
RUNNING = set()  # processes that we started
# Runs in the environment: one notebook, whose errors and first cell are told as JSON.
RUN = """
import json, signal, sys
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
signal.signal(signal.SIGTERM, signal.default_int_handler)  # it then ends its kernel
notebook = nbformat.read(sys.argv[1], as_version=4)
fault = ""
try:
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
except CellExecutionError as error:
    fault = f"{error.ename}: {error.evalue}"
cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
outputs = [output for cell in cells for output in cell.outputs]
errors = [o.ename + ": " + o.evalue for o in outputs if o.output_type == "error"]
first = "".join(o.get("text", "") for o in cells[0].outputs)
run = sum(bool(cell.execution_count) for cell in cells)
told = {"fault": fault, "errors": errors, "first": first, "cells": len(cells)}
print(json.dumps(told | {"run": run}))
"""


def main():
    """Make the environment and the archive, run all notebooks, and say what failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all unless named")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--environment", type=Path, help="made before; kept")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C
    named = {path.resolve() for path in given.notebooks}
    paths = [p for f in ("notebooks", "solutions") for p in tracked(f, ".ipynb")]
    missing = named - set(paths)
    if missing or not paths:
        print(f"colab: no such notebook here: {sorted(map(str, missing))}")
        return 2
    paths = [path for path in paths if not named or path in named]
    try:
        return check_all(paths, given)
    except KeyboardInterrupt:
        print("colab: stopped")
        return 130


def check_all(paths, given):
    """Check these notebooks; return the exit code."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="colab-") as name:
        work = Path(name)
        python = environment(given.environment or work / "environment")
        print(f"colab: the environment took {time.monotonic() - start:.0f} s")
        copy, address = released(work, python)
        pool = ThreadPoolExecutor(given.jobs)
        try:
            tasks = [
                pool.submit(check, path, copy, address, work, python) for path in paths
            ]
            failed = sum(not task.result() for task in tasks)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in tuple(RUNNING):
                end(process)
            pool.shutdown()
    took = time.monotonic() - start
    print(f"colab: {len(paths)} notebooks, {failed} failed, {took:.0f} s in all")
    return 1 if failed else 0


def tracked(folder=".", suffix=""):
    """Return the files of the repository, without what git ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    listed.check_returncode()
    found = (REPOSITORY / line for line in sorted(set(listed.stdout.splitlines())))
    return [path for path in found if path.is_file() and path.suffix.endswith(suffix)]


def environment(folder):
    """Make the environment that stands for Colab; return its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        spec = importlib.util.spec_from_file_location("run", REPOSITORY / "run.py")
        run = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(run)
        if sys.platform == "linux":
            run.install_cpu_torch(folder)  # and never 3 GB of CUDA
        run.step([*run.pip_install(folder, CONSTRAINTS), *PRELOADED], folder)
    return python


def machine(folder, python):
    """Make an environment of its own on top of that one; return its Python.

    Like a new machine of Colab: all is there but the course, and what is installed
    goes where nobody else looks.
    """
    layer = [python, "-m", "venv", "--without-pip", folder]
    subprocess.run(layer, check=True)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = folder / "bin" / "python"
    below, site = (
        subprocess.check_output([one, "-c", ask], text=True).strip()
        for one in (python, own)
    )
    Path(site, "preloaded.pth").write_text(below + "\n", "utf-8")
    return own


def released(work, python):
    """Stamp a copy as released and pack it; return it and where the archive is."""
    copy = work / "copy"
    for path in tracked():
        name = path.relative_to(REPOSITORY)
        if name.parts[0] != "exercises":  # made from solutions, by nbgrader
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy / name)
    stamp = [python, "-m", "coursekit.classroom.release", copy, SLUG]
    subprocess.run(stamp, cwd=copy, check=True, stdout=subprocess.DEVNULL)
    code = (copy / "coursekit" / "__init__.py").read_text("utf-8")
    version = re.search('__version__ = "(.+)"', code)[1]
    site = work / "site"
    archive = site / "archive" / "refs" / "tags" / f"v{version}"
    top = work / f"course-{version}"  # as in the archive of a tag
    copy.rename(top)
    shutil.make_archive(str(archive), "zip", work, top.name)
    return top, site.as_uri()


def as_colab(path, address):
    """Return a stamped notebook as Colab saves it, without outputs."""
    text = path.read_text("utf-8")
    notebook = json.loads(text.replace(f"https://github.com/{SLUG}", address))
    for cell in notebook["cells"]:
        cell["metadata"] = {"id": cell.pop("id")}
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook["metadata"] = {"colab": {"provenance": []}, "kernelspec": kernel}
    notebook["metadata"]["language_info"] = {"name": "python"}
    return json.dumps(notebook | {"nbformat": 4, "nbformat_minor": 0}, indent=1)


def check(path, copy, address, work, python):
    """Run one notebook, alone in an empty folder; say whether it went well."""
    name = path.relative_to(REPOSITORY)
    folder = work / "content" / "-".join(name.with_suffix("").parts)
    folder.mkdir(parents=True)
    own = machine(folder.with_name(folder.name + ".machine"), python)
    (folder / path.name).write_text(as_colab(copy / name, address), "utf-8")
    variables = {k: v for k, v in os.environ.items() if not k.startswith("COURSE_")}
    variables |= {"OMP_NUM_THREADS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    variables.pop("PYTHONPATH", None)
    start = time.monotonic()
    fault = told_fault(run_apart([own, "-c", RUN, path.name], folder, variables))
    took = time.monotonic() - start
    print(f"colab: {name}: {fault or 'passed'}, {took:.0f} s", flush=True)
    return not fault


def run_apart(command, folder, variables):
    """Run a command in a process group of its own, and leave nothing of it behind."""
    with subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        RUNNING.add(process)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            out, err = "", f"it ran for more than {SECONDS} s"
        finally:
            end(process)
            RUNNING.discard(process)
    return out, err


def end(process):
    """End a process group that we started, gently and then by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for tenth in range(100):
            try:
                os.killpg(process.pid, 0 if tenth else number)
            except ProcessLookupError:
                return
            process.poll()
            time.sleep(0.1)


def told_fault(output):
    """Return what was wrong with a run, or an empty string."""
    out, err = output
    try:
        told = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        return "FAILED, it could not be run: " + " ".join(err.split())[-400:]
    if told["fault"] or told["errors"]:
        first = " ".join(told["first"].split())[-400:]
        return f"FAILED: {told['fault'] or told['errors'][0]} (the first cell: {first})"
    if told["run"] != told["cells"]:
        return f"FAILED: {told['run']} of {told['cells']} code cells were run"
    first = told["first"].strip().splitlines() or [""]  # before it pip may have a note
    if not re.fullmatch(r"coursekit [\d.]+ · Python .*", first[-1]):
        return f"FAILED, the Colab cell said: {told['first'].strip()!r}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
