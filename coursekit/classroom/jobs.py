"""Run the cells of a submission, over and over if need be, and collect its answers."""

import time
from typing import Any

from coursekit.classroom.notebooks import readable
from coursekit.classroom.sandbox import Limits, NotStarted, watched

RESTARTS = 8


def run_job(
    cells: list[tuple[str, str]],
    exercises: dict[str, dict],
    limits: Limits,
    wrap: list[str],
) -> tuple[dict[str, Any], list[str]]:
    """Run the cells of a submission and collect the results of its answers.

    A cell that ends the worker, or runs on when it is told to stop, is left out when
    the worker is started again, so that the other answers still count.

    Args:
        cells: Role and source of each.
        exercises: Name → ``seed`` and ``constants`` of its hidden test.
        limits: Of time and memory.
        wrap: From ``bubblewrap``.

    Returns:
        Name → what ``checks.collect`` kept, and what went wrong, in words.
    """
    skip, over, notes = [], [], []
    collected: dict[str, Any] = {}
    end = time.monotonic() + limits.total
    for attempt in range(RESTARTS + 1):
        if attempt == RESTARTS:  # the last one: imports and answers alone
            needed = ("imports", *exercises)
            skip += [i for i, cell in enumerate(cells) if cell[0] not in needed]
        job = {"cells": cells, "exercises": exercises, "skip": skip, "over": over}
        job |= {"seconds": limits.seconds, "memory": limits.memory}
        job |= {"cpu": int(limits.total) + 1}
        messages, why = watched(job, limits, end, wrap)
        at, faults, now, ready = None, [], {}, False
        for message in messages:
            ready = ready or "ready" in message
            if not _valid(message, cells, exercises):
                continue
            if "fault" in message:
                faults.append(f"cell {_place(message)}: {_line(message['fault'])}")
            elif "collected" in message:
                now[message["exercise"]] = message["collected"]
                at = None
            elif "cell" in message or "exercise" in message:
                at = message
        collected = {**collected, **now}
        if not why:
            return collected, [*notes, *faults]
        if time.monotonic() > end:
            faults.append(f"all of it took over {limits.total:g} s")
            return collected, [*notes, *faults]
        if not ready:
            raise NotStarted(why)
        if at is None:
            return collected, [*notes, *faults, why]
        if "exercise" in at:
            name = at["exercise"]
            collected[name] = [{"fault": f"{name}: {why}"}]
            over.append(name)
        else:
            notes.append(f"cell {_place(at)}: {why}")
            skip.append(at["cell"])
    return collected, [*notes, f"it ended {RESTARTS + 1} workers, and had no other"]


def _valid(message: dict, cells: list, exercises: dict) -> bool:
    """Tell whether a message has the form of a worker's; a student may write, too."""
    cell, name = message.get("cell", 0), message.get("exercise")
    inside = type(cell) is int and 0 <= cell < len(cells)
    known = name is None or (isinstance(name, str) and name in exercises)
    return inside and known and ("collected" not in message or name is not None)


def _place(message: dict) -> str:
    """Name a cell by its role, or by its number from 1."""
    role, number = message.get("role"), message.get("cell")
    return _line(role) if role else str(number + 1)


def _line(text: Any) -> str:
    return readable(" ".join(str(text).split())[:300])
