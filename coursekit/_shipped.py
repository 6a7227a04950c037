"""Files that the package brings along, read only if no byte of them has changed."""

import hashlib
from importlib.resources import files


def read(name: str, sha256: str) -> bytes:
    """Read one file of ``coursekit/data``, whole and unchanged.

    A changed text would move every number of the course a little, and nobody would
    see why; so the file is compared with what was shipped.

    Args:
        name: File name.
        sha256: Of the shipped file, in hexadecimal.

    Returns:
        Its bytes.

    Raises:
        ValueError: If the file is missing or not the one that was shipped.
    """
    try:
        data = (files("coursekit") / "data" / name).read_bytes()
    except OSError as error:
        raise ValueError(
            f"coursekit/data/{name} cannot be read ({type(error).__name__}), but it "
            f"comes with the package. Install coursekit anew, or fetch the folder."
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ValueError(
            f"coursekit/data/{name} has {len(data)} bytes with sha256 {found[:8]}…, "
            f"but {sha256[:8]}… was shipped: it is damaged or edited, or its line ends "
            f"changed. Put the original back, or install coursekit anew."
        )
    return data
