"""Grade a folder of submissions: marks, a page for each student, one table."""

import argparse
import contextlib
import csv
import hashlib
import io
import json
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from coursekit import __version__, checks
from coursekit.classroom.exercises import write_exercises
from coursekit.classroom.feedback import feedback_pages
from coursekit.classroom.sandbox import STOP, Limits, Stopped, bubblewrap, run_job
from coursekit.classroom.submissions import (
    Assignment,
    Submission,
    find_submissions,
    read_assignments,
    readable,
)
from coursekit.classroom.variants import variant_constants

COLUMNS = ("student", "assignment", "score", "max_score", "file", "page", "notes")
DEATHS = 3  # times that a submission may take the grader with it
NOTES = 25  # for one submission
BARE = """\
run.py grade: WARNING: the students' code runs as you, with your files and your network.
{why} Otherwise grade in a container, or as a user who owns nothing: teachers.md says
how."""
MISSING = (
    "There is no bubblewrap here. On Debian and Ubuntu: sudo apt install bubblewrap."
)
REFUSED = "You asked for no sandbox: leave --no-sandbox out."


class Mark(NamedTuple):
    """What one exercise of one submission came to."""

    exercise: str
    share: float  # of one point
    line: str


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


def _ours(cell: Any, assignment: Assignment) -> bool:
    """Tell a known case or a check as it was handed out: it need not run again."""
    prefixes = ("known-", "check-")
    same = cell.source.strip() == assignment.sources.get(cell.role, "").strip()
    return cell.role.startswith(prefixes) and same


def _borrowed(submission: Submission, assignment: Assignment) -> list[str]:
    """Name what an answer takes from where the right answers are."""
    told = []
    for cell in submission.cells:
        for word in ("coursekit.slips", "EXERCISES", "checks.known"):
            ours = cell.role in assignment.restored
            if word in cell.source and not ours:
                told.append(f"cell {cell.role or '?'} uses {word}: look at it")
    return told


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
    settings = _settings(out, variant, seed, assignments, limits)
    wrap = bubblewrap() if wrap is None else wrap
    known = {a.stem: a for a in assignments}

    def _one(submission: Submission) -> dict:
        place = out / "marks" / f"{_key(submission, settings)}.json"
        with contextlib.suppress(OSError, ValueError):
            return json.loads(place.read_text(encoding="utf-8"))
        record = _record(submission, known.get(submission.stem), folder)
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
        _write(place, json.dumps(record))
        tries.unlink(missing_ok=True)
        return record

    records = _all(_one, submissions, jobs, progress)
    pages = feedback_pages(records, out / "feedback")
    return _tables(records, pages, out)


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


def _settings(
    out: Path,
    variant: int | None,
    seed: int | None,
    assignments: list[Assignment],
    limits: Limits,
) -> dict:
    """Return what all marks of this folder depend on; the seed is drawn once."""
    place = out / "batch.json"
    before: dict = {}
    with contextlib.suppress(OSError, ValueError, TypeError):
        before = dict(json.loads(place.read_text(encoding="utf-8")))
    if before and before.get("variant") != variant:
        raise ValueError(
            f"{out} holds marks for the variant {before.get('variant')}, but these are "
            f"to be made for {variant}. Give the variant that was handed out, or name "
            f"another folder with --to."
        )
    if seed is None:
        seed = before.get("seed")
    if type(seed) is not int:
        seed = secrets.randbelow(2**31)
    code = hashlib.sha256(json.dumps([a.sources for a in assignments]).encode())
    for path in sorted(Path(checks.__file__).parent.rglob("*.py")):
        code.update(path.read_bytes())
    settings = {"seed": seed, "variant": variant, "version": __version__}
    settings |= {"limits": list(limits), "code": code.hexdigest()}
    _write(place, json.dumps(settings))
    return settings


def _key(submission: Submission, settings: dict) -> str:
    """Name a mark by all that it depends on."""
    content = b""
    if submission.path.is_file() and not submission.path.is_symlink():
        with submission.path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
    told = [submission.student, submission.stem, readable(str(submission.path))]
    told += [submission.fault, *submission.notes, settings]
    return hashlib.sha256(json.dumps(told).encode() + content).hexdigest()[:40]


def _record(
    submission: Submission, assignment: Assignment | None, folder: Path
) -> dict:
    """Start the record of a submission, with no points for each exercise."""
    names = assignment.exercises if assignment else ()
    marks = [Mark(name, 0.0, f"{name}: not graded.")._asdict() for name in names]
    return {
        "student": submission.student,
        "assignment": submission.stem,
        "file": readable(submission.path.relative_to(folder).as_posix()),
        "notes": list(submission.notes),
        "look": _borrowed(submission, assignment) if assignment else [],
        "fault": submission.fault,
        "marks": marks,
        "answers": {c.role: c.source for c in submission.cells if c.role in names},
    }


def _tables(records: list[dict], pages: dict[str, str], out: Path) -> Path:
    """Write the table of scores, and one of every exercise."""
    scores, lines = io.StringIO(), io.StringIO()
    table = csv.writer(scores, lineterminator="\n")
    long = csv.writer(lines, lineterminator="\n")
    table.writerow(COLUMNS)
    long.writerow(("student", "assignment", "exercise", "share", "line"))
    for record in records:
        marks = record["marks"]
        score = f"{sum(mark['share'] for mark in marks):g}"
        score = "" if record.get("open") else score
        told = [record["fault"], *record["look"], *record["notes"]]
        told = [note[:300] for note in told if note]
        more = [f"and {len(told) - NOTES} more"] if len(told) > NOTES else []
        who = record["student"], record["assignment"]
        page = pages[record["student"]]
        notes = "; ".join([*told[:NOTES], *more])
        row = (*who, score, len(marks), record["file"], page, notes)
        table.writerow([_safe(value) for value in row])
        for mark in marks:
            row = (*who, mark["exercise"], f"{mark['share']:g}", mark["line"])
            long.writerow([_safe(value) for value in row])
    _write(out / "exercises.csv", "\ufeff" + lines.getvalue())  # Excel needs the mark
    _write(out / "grades.csv", "\ufeff" + scores.getvalue())
    return out / "grades.csv"


def _safe(value: Any) -> Any:
    """Keep a spreadsheet from taking a student's text for a formula."""
    risky = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if risky else value


def _write(path: Path, text: str) -> None:
    """Write so that the file never holds half of it."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8", newline="\n")
    os.replace(part, path)


def _count(word: str) -> int:
    """Read a whole number from 0 on that fits into 63 bits."""
    number = int(word)
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{word} is not from 0 to 2^63 - 1")
    return number


def _amount(word: str) -> float:
    """Read a number above 0 that is not endless."""
    number = float(word)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{word} is not above 0 and below 1,000,000")
    return number


def main(words: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="run.py grade", description=__doc__)
    parser.add_argument("solutions", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("submissions", type=Path, help="folder of notebooks")
    parser.add_argument(
        "--to", type=Path, help="where marks go; SUBMISSIONS-graded unless given"
    )
    parser.add_argument("--variant", type=int, metavar="SEED", help="as handed out")
    parser.add_argument("--jobs", type=_count, default=1, help="how many at once")
    parser.add_argument(
        "--seed", type=_count, help="of the hidden inputs; drawn unless given"
    )
    usual = Limits()
    parser.add_argument(
        "--seconds",
        type=_amount,
        default=usual.seconds,
        help="for a cell, or an answer",
    )
    parser.add_argument(
        "--memory", type=_amount, default=usual.memory / 1e9, help="in GB, of a kernel"
    )
    parser.add_argument(
        "--no-sandbox", action="store_true", help="run the students' code as you"
    )
    given = parser.parse_args(words)
    at = given.submissions.resolve()
    out = given.to or Path(f"{at}-graded")
    wrap = [] if given.no_sandbox else bubblewrap()
    if not wrap:
        why = REFUSED if given.no_sandbox else MISSING
        print(BARE.format(why=why), file=sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell may have them ignored
        signal.signal(number, signal.default_int_handler)
    limits = Limits(given.seconds, usual.total, int(given.memory * 1e9))
    try:
        with tempfile.TemporaryDirectory() as name:
            write_exercises(given.solutions, Path(name), given.variant)
            assignments = read_assignments(Path(name))
        table = grade_folder(
            *(at, out, assignments),
            variant=given.variant,
            seed=given.seed,
            limits=limits,
            wrap=wrap,
            jobs=given.jobs,
        )
    except (ValueError, OSError) as error:
        print(f"run.py grade: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "run.py grade: stopped. The same command goes on from here.",
            file=sys.stderr,
        )
        return 130
    print(f"{table}\n{out / 'feedback'}: a page for each student")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
