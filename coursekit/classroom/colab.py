"""The first code cell of every notebook, and what it prints once run on Colab."""

import platform
import re
from importlib import metadata

_FAILED = "Not installed: the course needs the internet and Python 3.11 or newer."


def colab_cell(version: str, address: str) -> str:
    """Write the first code cell: it does nothing where the course is installed.

    It reads nothing beside the notebook, which may come from Drive or Classroom, and
    ``--no-deps`` keeps pip from replacing what Colab has already loaded.

    Args:
        version: Of the course; its tag is this with a v before it.
        address: Of the repository, or "" before the first release.

    Returns:
        The source of the cell, at most 15 lines of 88 characters.
    """
    if not address:
        return f"""\
# Where the course is installed, this cell does nothing.
try:
    import coursekit  # noqa: F401
except ModuleNotFoundError:
    wheel = "coursekit-{version}-py3-none-any.whl"
    print(
        f"The course is not installed here: put {{wheel}}, which came with it, "
        f"beside this notebook or into Colab's files, run %pip install --no-deps "
        f"{{wheel}} in a cell of its own, and then this cell again."
    )"""
    return f"""\
# Where the course is installed, this cell does nothing; on Colab it installs it.
try:
    import coursekit  # noqa: F401
except ModuleNotFoundError:
{_assignment(address)}
    %pip install -q --no-deps {{address}}/archive/refs/tags/v{version}.zip
    try:
        from coursekit.classroom.colab import report

        print(report())
    except ModuleNotFoundError:
        print("{_FAILED}")"""


def _assignment(address: str) -> str:
    """Write the line with the address, in four where it would be too long."""
    line = f'    address = "{address}"'
    if len(line) <= 88:
        return line
    owner, _, name = address.rpartition("/")
    return f'    address = (\n        "{owner}/"\n        "{name}"\n    )'


def report(found: dict[str, str] | None = None) -> str:
    """Say which versions this runtime has, and whether they are new enough.

    The lower bounds are those of the installed package: they stand in pyproject.toml.

    Args:
        found: Name to version, to be told instead of what is installed.

    Returns:
        One line of versions, and after it one sentence if something is too old.
    """
    bounds = _bounds()
    if found is None:
        found = {name: _version(name) for name in bounds}
    told = [f"coursekit {metadata.version('coursekit')}"]
    told += [f"{name} {found[name]}" for name in bounds]
    old = [
        f"{name} {found[name]} (the course needs {bound} or newer)"
        for name, bound in bounds.items()
        if _parts(found[name]) < _parts(bound)
    ]
    line = " · ".join(told)
    if not old:
        return line
    return (
        f"{line}\nThis runtime has {', '.join(old)}: choose Runtime, Change runtime "
        f"type and the latest version, and run this cell again."
    )


def _bounds() -> dict[str, str]:
    """Return name → lowest version, of Python and of what the course cannot do without.

    Extras are left out: nobody needs JupyterLab inside Colab.
    """
    lines = metadata.requires("coursekit") or []
    lines = [line for line in lines if "extra ==" not in line]
    lines.insert(0, "Python" + metadata.metadata("coursekit")["Requires-Python"])
    found = (re.match(r"([\w.-]+).*?>=\s*([\d.]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def _version(name: str) -> str:
    if name == "Python":
        return platform.python_version()
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def _parts(version: str) -> list[int]:
    """Return the numbers of a version: 2.13.0+cpu → [2, 13], 3.10 → [3, 10], none → [].

    Zeros at the end are dropped, so that 2.0 is not older than 2.0.0.
    """
    found = re.match(r"\d+(?:\.\d+)*", version)
    parts = [int(part) for part in found[0].split(".")] if found else []
    while parts and not parts[-1]:
        parts.pop()
    return parts
