"""The command that grades a folder of submissions: python run.py grade."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from coursekit.classroom.exercises import write_exercises
from coursekit.classroom.grading import grade_folder
from coursekit.classroom.notebooks import read_assignments
from coursekit.classroom.sandbox import Limits, bubblewrap

BARE = """\
run.py grade: WARNING: the students' code runs as you, with your files and your network.
{why} Otherwise grade in a container, or as a user who owns nothing: teachers.md says
how."""
MISSING = (
    "There is no bubblewrap here. On Debian and Ubuntu: sudo apt install bubblewrap."
)
REFUSED = "You asked for no sandbox: leave --no-sandbox out."


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
    """Run the command. Args: Its words, if not its own. Returns: Its exit code."""
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
