"""Files that are there whole or not at all."""

from pathlib import Path


def write_whole(path: Path, text: str) -> bool:
    """Write a file, so that at no moment a half-written one bears its name.

    Args:
        path: Where to; its folder is there already.
        text: What it is to hold, in UTF-8 and with line ends as they are.

    Returns:
        Whether that changes it; a file that holds the text is not touched.
    """
    data = text.encode()
    if path.is_file() and path.read_bytes() == data:
        return False
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
    return True
