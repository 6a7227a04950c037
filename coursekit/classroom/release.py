"""Stamp the course with its address and version, everywhere and from one place.

python -m coursekit.classroom.release ROOT [OWNER/REPO] [--check]

The address is [project.urls] of pyproject.toml, the version that of coursekit.
"""

import argparse
import re
import sys
from pathlib import Path

from coursekit._files import write_whole
from coursekit.classroom.address import (
    FOLDERS,
    address_of,
    read_course,
    read_text,
    with_address,
    with_colab,
    with_version,
)
from coursekit.classroom.stamp import Course, stamped


def texts(root: Path, slug: str | None = None) -> dict[Path, str]:
    """Make all stamped texts; nothing is written.

    Args:
        root: Of the repository.
        slug: OWNER/REPO of a release; None keeps the address that pyproject.toml has.

    Returns:
        File to text, for every file that carries a stamp.

    Raises:
        ValueError: If the slug is none, or a file cannot be stamped.
    """
    course = read_course(root)
    made = {}
    if slug is not None:
        course = course._replace(address=address_of(slug))
    project = root / "pyproject.toml"
    made[project] = with_address(read_text(project), course.address)
    made[root / "README.md"] = with_colab(read_text(root / "README.md"), course)
    citation = root / "CITATION.cff"
    if citation.is_file():
        made[citation] = with_version(read_text(citation), course)
    for folder, stems in zip(FOLDERS, course[2:], strict=True):
        for stem in stems:
            path = root / folder / f"{stem}.ipynb"
            made[path] = stamped(read_text(path), course, folder, stem)
    if (root / "exercises").is_dir():
        from coursekit.classroom.exercises import exercise_from  # needs nbgrader

        for stem in course.exercises:
            solution = made[root / "solutions" / f"{stem}.ipynb"]
            path = root / "exercises" / f"{stem}.ipynb"
            made[path] = exercise_from(solution, stem)
    return made


def faults(root: Path) -> list[str]:
    """Find what does not agree with the one place; an empty list if all does.

    Args:
        root: Of the repository.

    Returns:
        A sentence for each file that another stamping would change, and for each
        address of another repository or tag in the notebooks, README and citation.

    Raises:
        ValueError: If a file cannot be stamped at all.
    """
    course, found = read_course(root), []
    for path, text in texts(root).items():
        name = path.relative_to(root).as_posix()
        if not path.is_file() or path.read_bytes() != text.encode():
            found.append(f"{name} is not as stamped. Run: python run.py release")
        strays = _strays(text, course)
        found += [f"{name} leads to {link}, which is not ours." for link in strays]
    return found


def _strays(text: str, course: Course) -> list[str]:
    """Return the addresses of our files in another repository, or at another tag."""
    link = r"[^\s)\\\"]+"
    on_colab = r"https://colab\.research\.google\.com/github/" + link
    strays = re.findall(on_colab, text)
    if course.address:
        right = course.on_colab("", "").removesuffix("/.ipynb")
        strays = [found for found in strays if not found.startswith(right)]
        ours = re.escape(course.address) + "/(?:blob|tree|raw|archive)/" + link
        tag = re.compile(rf"/v{re.escape(course.version)}(?:/|\.zip$)")
        strays += [one for one in re.findall(ours, text) if not tag.search(one)]
    return strays


def release(root: Path, slug: str | None = None) -> list[Path]:
    """Stamp all files; one that holds the right bytes is not touched.

    Args:
        root: Of the repository.
        slug: OWNER/REPO; None keeps the address that pyproject.toml has.

    Returns:
        The files that were changed.

    Raises:
        ValueError: As ``texts`` and ``faults`` do. Nothing is written then.
    """
    made = texts(root, slug).items()
    return [path for path, text in made if write_whole(path, text)]


def main(words: list[str] | None = None) -> int:
    """Run the command. Args: Its words, if not its own. Returns: Its exit code."""
    parser = argparse.ArgumentParser(prog="run.py release", description=__doc__)
    parser.add_argument("root", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("slug", nargs="?", metavar="OWNER/REPO", help="on GitHub")
    parser.add_argument("--check", action="store_true", help="only see that all agrees")
    given = parser.parse_args(words)
    if given.check and given.slug:
        parser.error("--check changes nothing, so it takes no OWNER/REPO")
    try:
        changed = [] if given.check else release(given.root, given.slug)
        wrong = faults(given.root)
        course = read_course(given.root)
    except ValueError as error:
        print(f"run.py release: {error}", file=sys.stderr)
        return 1
    for sentence in wrong:
        print(f"run.py release: {sentence}", file=sys.stderr)
    for path in changed:
        print(f"{path.relative_to(given.root).as_posix()}: stamped")
    if not wrong:
        where = course.address or "no address yet: run.py release OWNER/REPO gives one"
        print(f"All agree: version {course.version}, {where}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
