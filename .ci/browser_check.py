"""Run every notebook of notebooks/ in a real browser, as a reader would.

JupyterLab is started by the course's own command, with a token, on a copy of the
repository. Each notebook is opened in headless Chromium, its outputs are cleared, Run
All Cells is chosen in the menu, and then the result has to hold: every cell run, no
error, a picture wherever the committed notebook has one, each picture drawn on the
page, no broken formula or widget, no error in the console.

    python .ci/browser_check.py --artefacts artefacts/browser
"""

import argparse
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright.sync_api import Error as BrowserError
from playwright.sync_api import sync_playwright

REPOSITORY = Path(__file__).resolve().parents[1]
CHROMIUM_FLAGS = [
    "--no-sandbox",  # Chromium refuses its sandbox to root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# What JupyterLab's console may say, each a pattern with its reason. None is known.
HARMLESS: dict[str, str] = {}
# Pictures and faults that stand on the page at this moment; off-screen cells do not.
LOOK = """() => ({
    pictures: [...document.querySelectorAll('.jp-OutputArea-output img')]
        .filter(image => image.complete && image.naturalWidth > 50)
        .map(image => image.src.length + image.src.slice(-400)),
    faults: [...document.querySelectorAll('mjx-merror, .jupyter-widgets-error-widget')]
        .map(element => element.textContent.trim().slice(0, 100)),
})"""
SCROLL = """fraction => {
    const panel = document.querySelector('.jp-Notebook .jp-WindowedPanel-outer')
        || document.querySelector('.jp-Notebook');
    panel.scrollTop = fraction * panel.scrollHeight;
    return panel.scrollHeight / panel.clientHeight;
}"""


class Server:
    """JupyterLab on a folder, started through run.py, with calls to its API."""

    def __init__(self, root, log):
        """Start the server on a free port."""
        self.root = root
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.token = secrets.token_hex(16)
        self.address = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, str(REPOSITORY / "run.py"), "lab", "--no-browser"]
        command += ["--port", str(self.port), "--ServerApp.port_retries=0"]
        command += [f"--ServerApp.root_dir={root}"]
        self.process = subprocess.Popen(
            [*command, f"--IdentityProvider.token={self.token}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait(self, seconds):
        """Wait until the server answers; fail when it ends or takes too long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise SystemExit(f"JupyterLab ended with {self.process.returncode}.")
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                return self.call("api/status")
            time.sleep(0.3)
        raise SystemExit(f"JupyterLab did not answer in {seconds} s.")

    def call(self, path, method="GET", *, token=True):
        """Call the API and return its answer, or None when it has nothing to say."""
        headers = {"Authorization": f"token {self.token}"} if token else {}
        request = urllib.request.Request(f"{self.address}/{path}", None, headers)
        request.method = method
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def refuses_strangers(self):
        """Say whether a call without the token is turned away."""
        try:
            self.call("api/contents", token=False)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code == 403
        return False

    def stop(self):
        """End the server and with it its kernels."""
        for number, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
            if self.process.poll() is None:
                os.killpg(self.process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(patience)


class Sitting:
    """One notebook, open in the browser."""

    def __init__(self, server, page, name):
        """Take the running server, a new page and the name of the notebook."""
        self.server, self.page, self.path = server, page, f"notebooks/{name}"
        self.file = server.root / self.path
        self.console = []
        page.on("console", self.listen)
        page.on("pageerror", lambda error: self.console.append(str(error)))

    def listen(self, message):
        """Keep each error of the console that is not known to be harmless."""
        place = message.location.get("url", "")
        text = f"{message.text} {place}"
        if message.type == "error" and not any(re.search(p, text) for p in HARMLESS):
            self.console.append(text)

    def choose(self, menu, entry):
        """Choose an entry of a menu by its label, as no stable command names it."""
        self.stop_at_dialog()
        self.page.locator(f".lm-MenuBar-itemLabel:text-is('{menu}')").click()
        self.page.locator(f".lm-Menu-itemLabel:text-is('{entry}')").click()

    def saved(self):
        """Save the notebook and return what was saved.

        It is read from the disk: the server's API fails on a file that it writes.
        """
        before = self.file.stat().st_mtime_ns
        self.choose("File", "Save Notebook")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            self.page.wait_for_timeout(200)  # unlike sleep, this lets messages in
            if self.file.stat().st_mtime_ns != before:
                with contextlib.suppress(ValueError):  # half written: once more
                    return json.loads(self.file.read_text("utf-8"))
        raise RuntimeError("the notebook could not be saved")

    def idle(self):
        """Say whether the kernel of this notebook is up and has nothing to do."""
        sessions = self.server.call("api/sessions")
        states = [s["kernel"]["execution_state"] for s in sessions]
        return states == ["idle"]

    def run(self, seconds):
        """Clear the outputs, run all cells and return the notebook that results."""
        end = time.monotonic() + seconds
        address = f"{self.server.address}/lab/tree/{self.path}"
        self.page.goto(f"{address}?token={self.server.token}&reset")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        while not self.idle():
            self.give_up_after(end, "the kernel did not start")
        self.choose("Edit", "Clear Outputs of All Cells")
        if any(cell["outputs"] for cell in code_cells(self.saved())):
            raise RuntimeError("the outputs could not be cleared")
        self.choose("Run", "Run All Cells")
        while True:
            self.give_up_after(end, f"not done after {seconds} s")
            if self.idle():
                cells = code_cells(self.saved())
                if any(errors(cell) for cell in cells) or all(map(was_run, cells)):
                    return cells

    def give_up_after(self, end, problem):
        """Wait a moment, or fail when the time is up."""
        if time.monotonic() > end:
            raise RuntimeError(problem)
        self.stop_at_dialog()
        self.page.wait_for_timeout(500)

    def stop_at_dialog(self):
        """Fail at a dialog, such as that of a kernel that died: nobody answers it."""
        dialog = self.page.locator(".jp-Dialog-content")
        if dialog.count():
            words = " ".join(dialog.first.inner_text().split())
            raise RuntimeError(f"JupyterLab asks: {words[:200]}")

    def look(self, screenshots):
        """Scroll through the page; return the pictures drawn and the faults seen."""
        pictures, faults, step, fraction = set(), set(), 0, 0.0
        while fraction < 1:
            screens = self.page.evaluate(SCROLL, fraction)
            self.page.wait_for_timeout(250)
            seen = self.page.evaluate(LOOK)
            self.page.screenshot(path=f"{screenshots}-{step:02}.png")
            pictures |= set(seen["pictures"])
            faults |= set(seen["faults"])
            step += 1
            fraction += 0.9 / max(screens, 0.9)
        return pictures, faults


def code_cells(notebook):
    """Return the code cells that hold code."""
    cells = notebook["cells"]
    return [
        c for c in cells if c["cell_type"] == "code" and "".join(c["source"]).strip()
    ]


def was_run(cell):
    """Say whether a cell has been run."""
    return cell["execution_count"] is not None


def errors(cell):
    """Return the errors of a cell that is not meant to raise one."""
    if "raises-exception" in cell["metadata"].get("tags", []):
        return []
    found = [o for o in cell["outputs"] if o["output_type"] == "error"]
    return [f"{error['ename']}: {error['evalue']}" for error in found]


def pictures(cell):
    """Count the pictures of a cell."""
    return sum("image/png" in output.get("data", {}) for output in cell["outputs"])


def compare(committed, cells):
    """Return the faults of the cells just run, against those committed."""
    faults = []
    if len(committed) != len(cells):
        faults.append(f"{len(cells)} code cells, but {len(committed)} are committed")
    for number, (old, new) in enumerate(zip(committed, cells, strict=False), start=1):
        faults += [f"code cell {number}: {error}" for error in errors(new)]
        if pictures(new) < pictures(old):
            faults.append(f"code cell {number}: its picture is missing")
        if not was_run(new):
            faults.append(f"code cell {number}: not run")
    return faults


def check(server, browser, name, options):
    """Run one notebook and return its faults and how many pictures were drawn."""
    committed = code_cells(
        json.loads((REPOSITORY / "notebooks" / name).read_text("utf-8"))
    )
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    sitting = Sitting(server, page, name)
    drawn, screenshots = set(), options.artefacts / Path(name).stem
    try:
        cells = sitting.run(options.seconds)
        faults = compare(committed, cells)
        drawn, seen = sitting.look(screenshots)
        faults += [f"on the page: {fault}" for fault in sorted(seen)]
        wanted = len(
            {
                json.dumps(o["data"]["image/png"])
                for c in cells
                for o in c["outputs"]
                if "image/png" in o.get("data", {})
            }
        )
        if len(drawn) < wanted:
            faults.append(f"{wanted} pictures, but {len(drawn)} drawn on the page")
    except (RuntimeError, BrowserError) as error:
        faults = [str(error).splitlines()[0]]
        with contextlib.suppress(BrowserError):
            page.screenshot(path=f"{screenshots}-failed.png")
    faults += [f"console: {line}" for line in sitting.console]
    page.close()
    for session in server.call("api/sessions"):
        server.call(f"api/sessions/{session['id']}", "DELETE")
    return faults, len(drawn)


def check_all(server, options):
    """Check every notebook, print a line for each, and return how many failed."""
    names = sorted(path.name for path in (REPOSITORY / "notebooks").glob("*.ipynb"))
    if not names:
        print("browser: there is no notebook in notebooks/", flush=True)
        return 1
    failed = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=CHROMIUM_FLAGS
        )
        for name in names:
            start = time.monotonic()
            faults, drawn = check(server, browser, name, options)
            failed += bool(faults)
            verdict = "FAILED" if faults else "ok"
            seconds = time.monotonic() - start
            print(
                f"browser: {name} {verdict}, {drawn} pictures, {seconds:.0f} s",
                flush=True,
            )
            for fault in faults:
                print(f"browser:     {fault}", flush=True)
        browser.close()
    return failed


def main():
    """Start JupyterLab on a copy, check every notebook, and leave nothing behind."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--artefacts", type=Path, default=REPOSITORY / "artefacts/browser"
    )
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--seconds", type=int, default=300, help="for each notebook")
    options = parser.parse_args()
    if not options.chromium:
        parser.error("no chromium found: install it, or name it with --chromium")
    options.artefacts.mkdir(parents=True, exist_ok=True)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # so that finally is reached
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "course")
        for folder in ("notebooks", "exercises"):
            if (REPOSITORY / folder).is_dir():
                shutil.copytree(REPOSITORY / folder, root / folder)
        with open(options.artefacts / "jupyterlab.log", "w") as log:
            server = Server(root, log)
            try:
                server.wait(60)
                if not server.refuses_strangers():
                    raise SystemExit("JupyterLab answers without its token.")
                failed = check_all(server, options)
            finally:
                server.stop()
    if failed:
        sys.exit(f"browser: {failed} failed; screenshots are in {options.artefacts}")


if __name__ == "__main__":
    main()
