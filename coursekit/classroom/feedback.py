"""One page for each student: a mark and a line for each exercise, and the answer."""

import hashlib
import html
import re
from pathlib import Path

from coursekit._files import write_whole

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto;
       padding: 0 1rem; color: #222; background: #fff }}
pre {{ background: #f4f4f4; padding: .7rem; white-space: pre-wrap }}
h3 {{ margin-bottom: 0 }} .full {{ color: #00603a }} .part {{ color: #7a4b00 }}
.none {{ color: #a01818 }}
</style>
<h1>{title}</h1>
{body}
</html>
"""


def feedback_pages(records: list[dict], folder: Path) -> dict[str, str]:
    """Write the pages, one for each student; pages of nobody are removed.

    Args:
        records: Of all submissions; all that a student wrote is shown as text.
        folder: Where the pages go; it is made if need be.

    Returns:
        Student → name of the page, the same in each run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_student: dict[str, list[dict]] = {}
    for record in records:
        by_student.setdefault(record["student"], []).append(record)
    pages = {}
    for student, own in by_student.items():
        name = re.sub(r"[^\w.-]+", "_", student).strip("._") or "student"
        name = name.encode()[:150].decode(errors="ignore")
        # Two names may become one, or differ in case: the digest tells them apart.
        digest = hashlib.sha256(student.encode()).hexdigest()[:6]
        pages[student] = f"{name}-{digest}.html"
        body = "\n".join(map(_assignment, own))
        page = _PAGE.format(title=html.escape(student), body=body)
        write_whole(folder / pages[student], page)
    for path in folder.glob("*.html"):
        if path.name not in pages.values():
            path.unlink()
    return pages


def _assignment(record: dict) -> str:
    """Write what one notebook came to."""
    marks = record["marks"]
    score = f"{sum(mark['share'] for mark in marks):g} of {len(marks)}"
    score = "not graded yet" if record.get("open") else score
    title = html.escape(record["assignment"] or record["file"])
    parts = [f"<h2>{title}: {score}</h2>"]
    for told in filter(None, (record["fault"], *record["notes"][:25])):
        parts.append(f"<p>Note: {html.escape(told)}</p>")
    for mark in marks:
        share = mark["share"]
        kind = "full" if share == 1 else "part" if share else "none"
        name, line = html.escape(mark["exercise"]), html.escape(mark["line"])
        parts.append(f'<h3 class="{kind}">{name}: {share:g}</h3><p>{line}</p>')
        answer = record["answers"].get(mark["exercise"], "")
        if answer:
            parts.append(f"<pre>{html.escape(answer)}</pre>")
    return "\n".join(parts)
