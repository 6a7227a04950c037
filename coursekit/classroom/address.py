"""The one place of address and version, and the files at the root that repeat them.

The address is [project.urls] of pyproject.toml, the version that of coursekit.
"""

import re
import tomllib
from pathlib import Path

from coursekit.classroom.stamp import Course

FOLDERS = ("notebooks", "solutions")
BEGIN, END = "<!-- colab -->", "<!-- /colab -->"
_BLOCK = re.compile(rf"{BEGIN}.*{END}")  # in a line of text: alone it would be HTML
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


def read_course(root: Path) -> Course:
    """Read what the stamps are made from.

    Args:
        root: Of the repository.

    Returns:
        Version, address, and the stems there are.

    Raises:
        ValueError: If pyproject.toml or the version cannot be read, or the address is
            none of a repository on GitHub.
    """
    code = read_text(root / "coursekit" / "__init__.py")
    version = re.search(r'^__version__ = "(\d+(?:\.\d+)+)"$', code, re.MULTILINE)
    if not version:
        raise ValueError(
            'coursekit/__init__.py has no line __version__ = "1.2.3". The tag, the '
            "wheel and the Colab cell are named after it: put it back."
        )
    project = tomllib.loads(read_text(root / "pyproject.toml"))["project"]
    address = project.get("urls", {}).get("Repository", "")
    if address:
        address_of(address.removeprefix("https://github.com/"))
    stems = [sorted(p.stem for p in (root / f).glob("*.ipynb")) for f in FOLDERS]
    return Course(version[1], address, *map(tuple, stems))


def address_of(slug: str) -> str:
    """Return the address of a repository.

    Args:
        slug: OWNER/REPO.

    Returns:
        https://github.com/OWNER/REPO

    Raises:
        ValueError: If it is not of that form.
    """
    if not _SLUG.fullmatch(slug) or slug.endswith((".git", "/.", "/..")):
        raise ValueError(
            f"{slug!r} is not OWNER/REPO, the last two parts of the repository's "
            f"address on GitHub. Write, for instance: python run.py release ada/course"
        )
    return f"https://github.com/{slug}"


def with_address(project: str, address: str) -> str:
    """Write the address into the text of pyproject.toml.

    Args:
        project: The text.
        address: Of the repository; "" changes nothing.

    Returns:
        The new text.

    Raises:
        ValueError: If there is no place for it.
    """
    if not address:
        return project
    line, before = f'Repository = "{address}"\n', "[project.optional-dependencies]"
    if "[project.urls]" in project:
        text = re.sub(r"(?m)^Repository = .*\n", line, project)
    else:
        text = project.replace(before, f"[project.urls]\n{line}\n{before}", 1)
    if tomllib.loads(text)["project"].get("urls", {}).get("Repository") != address:
        raise ValueError(
            "pyproject.toml has no place for the address: before the table "
            "[project.optional-dependencies] stands [project.urls], and in it a line "
            "Repository. Put them back."
        )
    return text


def with_version(citation: str, course: Course) -> str:
    """Write version and address into the text of CITATION.cff.

    Args:
        citation: The text.
        course: Version and address.

    Returns:
        The new text.
    """
    text = re.sub(r"(?m)^version: .*$", f"version: {course.version}", citation)
    if not course.address:
        return text
    text = re.sub(r"(?m)^repository-code: .*\n", "", text)
    address = f'repository-code: "{course.address}"\n'
    return re.sub(r"(?m)^license: ", f"{address}license: ", text, count=1)


def with_colab(readme: str, course: Course) -> str:
    """Write into the README where the notebooks open in Colab, under the map.

    Args:
        readme: The text.
        course: Version, address and lessons.

    Returns:
        The new text.

    Raises:
        ValueError: If it has neither a map nor one place for these links.
    """
    if course.address:
        rows = [
            f"[{stem[:2]}]({course.on_colab('notebooks', stem)})"
            for stem in course.lessons
        ]
        told = f"nothing to install: {' · '.join(rows)}"
    else:
        told = (
            "upload a notebook and the wheel that `python run.py release` puts into "
            "`dist/`, and run `%pip install --no-deps` with its name"
        )
    block = f"{BEGIN}{told}{END}"
    if BEGIN in readme or END in readme:
        if len(_BLOCK.findall(readme)) != 1 or readme.count(BEGIN) != 1:
            raise ValueError(
                f"README.md: the links to Colab stand between {BEGIN} and {END}, once "
                f"and on one line. Remove both and what is between them."
            )
        return _BLOCK.sub(lambda found: block, readme)
    rows = list(re.finditer(r"^\|.*\]\(notebooks/.*\|$", readme, re.MULTILINE))
    if not rows:
        raise ValueError(
            "README.md has no table with links to notebooks/, under which the links "
            f"to Colab belong. Add the table, or the lines {BEGIN} and {END}."
        )
    at = rows[-1].end()
    return f"{readme[:at]}\n\n**In Colab:** {block}.{readme[at:]}"


def read_text(path: Path) -> str:
    """Read a file of the repository.

    Args:
        path: Of the file.

    Returns:
        Its text.

    Raises:
        ValueError: If it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}. Restore it.") from None
