"""Grade a folder of submissions: run each apart, and judge its results here."""

import contextlib
import json
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from tqdm import tqdm

from coursekit import checks
from coursekit._files import write_whole
from coursekit.classroom.feedback import feedback_pages
from coursekit.classroom.jobs import run_job
from coursekit.classroom.notebooks import Assignment, Cell, readable
from coursekit.classroom.records import (
    Mark,
    key_of,
    record_of,
    settings_of,
    write_tables,
)
from coursekit.classroom.sandbox import STOP, Limits, Stopped, bubblewrap
from coursekit.classroom.submissions import Submission, find_submissions
from coursekit.classroom.variants import variant_constants

DEATHS = 3  # times that a submission may take the grader with it


def grade_submission(
    submission: Submission,
    assignment: Assignment,
    variant: int | None,
    seed: int,
    limits: Limits,
    wrap: list[str],
) -> tuple[list[Mark], list[str]]:
    """Run one submission apart, and judge its results here.

    Args:
        submission: Without a fault.
        assignment: Its assignment.
        variant: Seed of the constants that were handed out, or None.
        seed: Settles the inputs.
        limits: Of time and memory.
        wrap: The command to run it in, from ``bubblewrap``.

    Returns:
        A mark for each exercise, and notes for the teacher.
    """
    jobs = {
        name: {"seed": seed, "constants": variant_constants(name, variant)}
        for name in assignment.exercises
    }
    cells = [tuple(cell) for cell in submission.cells if not _ours(cell, assignment)]
    collected, notes = run_job(cells, jobs, limits, wrap)
    marks = []
    for name, job in jobs.items():
        if name in collected:
            verdict = checks.judge(name, collected[name], seed, **job["constants"])
            marks.append(Mark(name, *verdict))
        else:
            line = f"{name}: nothing in the notebook has this name when it has run."
            marks.append(Mark(name, 0.0, line))
    return marks, [*submission.notes, *notes]


def _ours(cell: Cell, assignment: Assignment) -> bool:
    """Tell a known case or a check as it was handed out: it need not run again."""
    prefixes = ("known-", "check-")
    same = cell.source.strip() == assignment.sources.get(cell.role, "").strip()
    return cell.role.startswith(prefixes) and same


def grade_folder(
    folder: Path,
    out: Path,
    assignments: list[Assignment],
    *,
    variant: int | None = None,
    seed: int | None = None,
    limits: Limits | None = None,
    wrap: list[str] | None = None,
    jobs: int = 1,
    progress: Callable = tqdm,
) -> Path:
    """Grade all submissions; what was graded before is not graded again.

    Args:
        folder: The submissions; nothing in it is changed.
        out: Where marks, pages and the table go.
        assignments: From ``read_assignments``.
        variant: Seed of the constants that were handed out, or None.
        seed: Settles the inputs; drawn once for this ``out`` unless given.
        limits: Of time and memory.
        wrap: The command to run them in; ``bubblewrap()`` unless given.
        jobs: How many to run at once.
        progress: Wraps what takes long.

    Returns:
        The table, ``out / "grades.csv"``.

    Raises:
        ValueError: If there is nothing to grade, or ``out`` lies among it.
    """
    folder, out = folder.resolve(), out.resolve()
    if out == folder or folder in out.parents:
        raise ValueError(
            f"{out} lies in the folder of submissions, and the marks would be taken "
            f"for some of them. Name another folder with --to."
        )
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}. Give the number of processes, 1 or more.")
    submissions = list(find_submissions(folder, assignments))
    (out / "marks").mkdir(parents=True, exist_ok=True)
    limits = limits or Limits()
    settings = settings_of(out, variant, seed, assignments, limits)
    wrap = bubblewrap() if wrap is None else wrap
    known = {a.stem: a for a in assignments}

    def _one(submission: Submission) -> dict:
        place = out / "marks" / f"{key_of(submission, settings, folder)}.json"
        with contextlib.suppress(OSError, ValueError):
            return json.loads(place.read_text(encoding="utf-8"))
        record = record_of(submission, known.get(submission.stem), folder)
        tries = place.with_suffix(".started")
        deaths = tries.stat().st_size if tries.exists() else 0
        if deaths >= DEATHS:
            record["fault"] = f"it ended the grader {deaths} times; grade it by hand."
            record["open"] = True
        elif not record["fault"]:
            with tries.open("ab") as stream:
                stream.write(b"x")
            arguments = (variant, settings["seed"], limits, wrap)
            try:
                marks, notes = grade_submission(
                    submission, known[submission.stem], *arguments
                )
            except Stopped:  # by us: it did not end the grader
                tries.write_bytes(b"x" * deaths)
                raise
            except Exception as error:  # ours, or the machine's: no mark is made of it
                tries.write_bytes(b"x" * deaths)
                told = f"{type(error).__name__}: {error}"
                fault = f"not graded, run it again: {readable(told)[:300]}"
                return record | {"fault": fault, "open": True}
            record |= {"marks": [m._asdict() for m in marks], "notes": notes}
        write_whole(place, json.dumps(record))
        tries.unlink(missing_ok=True)
        return record

    records = _all(_one, submissions, jobs, progress)
    pages = feedback_pages(records, out / "feedback")
    return write_tables(records, pages, out)


def _all(one: Callable, submissions: list, jobs: int, progress: Callable) -> list[dict]:
    """Grade on several threads; an interrupt starts no further submission."""
    pool = ThreadPoolExecutor(jobs)
    futures = {pool.submit(one, s): i for i, s in enumerate(submissions)}
    found: dict[int, dict] = {}
    try:
        with progress(total=len(futures), desc="graded", unit="notebook") as bar:
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    found[futures[future]] = future.result()
                    bar.update()
    except BaseException:
        STOP.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        STOP.clear()
    return [found[i] for i in sorted(found)]
