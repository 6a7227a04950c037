#!/usr/bin/env python3
"""The one front door of the course.

    python run.py lab                   open JupyterLab at the first notebook
    python run.py test                  run everything a contributor must pass
    python run.py refresh [notebook]    execute all notebooks, or those named, again
    python run.py exercises             make exercises/ from solutions/; --variant SEED
    python run.py grade SUBMISSIONS     grade a folder of notebooks; teachers.md
    python run.py release [OWNER/REPO]  stamp links and Colab cells, build a wheel
    python run.py doctor                say what is installed and what is wrong with it

The first call makes an environment in .venv, or in the folder that COURSE_VENV
names; later calls start in seconds. Further words go to the program behind:
run.py test -k rope, or run.py lab --no-browser --port 8890.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - older Pythons must get this far
    sys.exit(
        "run.py: this is Python {}.{}, and the course needs 3.11 or newer. Install "
        "one and name it, for instance: python3.12 run.py lab".format(
            *sys.version_info[:2]
        )
    )

import contextlib
import errno
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent
CONSTRAINTS = REPOSITORY / "constraints.txt"

# Our files in the environment folder. The stamp says what a finished environment
# was made for; while one is being made it says UNFINISHED instead.
STAMP, LOCK, LOG = "course-stamp.txt", "course-lock", "course-install.log"
UNFINISHED = "unfinished\n"

# What the environment holds: for readers, and for those who make and grade exercises.
READERS, TEACHERS = "lab,test", "lab,test,instructor"

# The same for test and refresh, or their outputs would differ: more threads add up
# a sum in another order, another hash seed walks a set in another order.
REPEATABLE = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "SOURCE_DATE_EPOCH": "0",
    "JUPYTER_PLATFORM_DIRS": "1",  # without it some versions of jupyter_core warn
}

FULL = r"No space left|not enough space|Errno 28\b|quota exceeded"
DENIED = r"Permission denied|Access is denied|Read-only file system"
CUDA = r"No matching distribution found for (cuda|nvidia|triton)|constraint.*nvidia"
OFFLINE = (
    r"name resolution|name or service not known|getaddrinfo|nodename nor servname"
    r"|dns error|NewConnectionError|ProxyError|SSLError|CERTIFICATE_VERIFY_FAILED"
    r"|connection (error|refused|reset|aborted)|timed? ?out|unreachable"
    r"|failed to establish|max retries exceeded|could not connect"
)
AGAIN = "and run the same command again."
NO_NETWORK = (
    "the packages cannot be fetched: no connection to the package index. Connect to "
    "the internet, or set your proxy, " + AGAIN
)
CUDA_REFUSED = (
    "the CPU build of torch is out of reach, and the other one for Linux brings about "
    "3 GB of CUDA libraries. Connect to the internet for the CPU build, or set "
    "COURSE_CUDA=1 to accept the download, " + AGAIN
)


class Fault(Exception):
    """Something the reader can mend, said in one plain sentence."""


def say(line):
    """Print a line of progress at once, also into a pipe."""
    print(line, flush=True)


# ---- the environment folder --------------------------------------------------------


def environment_folder():
    """Return the folder named by COURSE_VENV, or .venv beside this file."""
    named = os.environ.get("COURSE_VENV", "").strip()
    return Path(os.path.abspath(os.path.expanduser(named or REPOSITORY / ".venv")))


def python_of(folder):
    """Return the Python inside the environment ``folder``."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def wanted_stamp(folder, extras=READERS):
    """Return the stamp of a finished environment in ``folder`` with the ``extras``.

    An environment outlives neither its Python nor a move: they are the first two
    lines. The others cover what pip can bring up to date in place: the packages
    asked for, and the repository, which is installed by its path; and the extras.
    """
    digest = hashlib.sha256(os.fsencode(REPOSITORY))
    for path in (REPOSITORY / "pyproject.toml", CONSTRAINTS):
        if not path.is_file():
            raise Fault(
                f"{path.name} is missing beside run.py. Take the whole repository, "
                "not this file alone, " + AGAIN
            )
        digest.update(b"\0" + path.read_bytes())
    python = "python {}.{}".format(*sys.version_info[:2])
    return f"{python}\n{folder}\n{digest.hexdigest()}\n{extras}\n"


def read_stamp(folder):
    """Return the stamp in ``folder``, or an empty string if there is none."""
    try:
        return (folder / STAMP).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def write_whole(path, text):
    """Write ``text`` so that ``path`` never holds half of it, whenever we die."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def try_lock(stream):
    """Lock an open file and return True, or False while another process has it.

    The lock goes with the open file, so it cannot be left stuck: the system drops it
    with the last process that holds it. pip inherits it, so that a pip that outlives
    a killed run.py makes the next one wait, and the two never write at once.
    """
    try:
        if os.name == "nt":
            import msvcrt

            stream.seek(0)
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.set_inheritable(stream.fileno(), True)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise
        return False
    return True


def refuse_foreign(folder):
    """Stop before a folder that run.py did not make, rather than change it."""
    if folder.exists() and not folder.is_dir():
        raise Fault(f"{folder} is a file. Name a new or empty folder in COURSE_VENV.")
    if folder.is_dir() and not read_stamp(folder):
        ours = (LOCK, STAMP + ".part")
        foreign = sorted(p.name for p in folder.iterdir() if p.name not in ours)
        if foreign:
            raise Fault(
                f"{folder} is not an environment that run.py made: it holds "
                f"{foreign[0]}. Name a new or empty folder in COURSE_VENV, " + AGAIN
            )


def empty(folder):
    """Remove an unfinished or outdated environment, but for the stamp and the lock."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name not in (STAMP, LOCK):
            path.unlink()


def prepare(extras=READERS):
    """Return the Python of the environment, made or brought up to date if need be.

    An environment that has the extras of teachers keeps them, and serves readers too.
    """
    folder = environment_folder()
    python = python_of(folder)
    if read_stamp(folder).endswith(f"\n{TEACHERS}\n"):
        extras = TEACHERS
    wanted = wanted_stamp(folder, extras)
    if read_stamp(folder) == wanted and python.exists():
        return python
    refuse_foreign(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a+b") as lock:
        if not try_lock(lock):
            say(f"Waiting for another run.py that sets up {folder} ...")
            while not try_lock(lock):
                time.sleep(0.2)
        found = read_stamp(folder)  # again, as that other one may just have finished
        if found == wanted_stamp(folder, TEACHERS):
            wanted = found
        usable = found.split("\n")[:2] == wanted.split("\n")[:2] and python.exists()
        if not (usable and found == wanted):
            write_whole(folder / STAMP, UNFINISHED)
            say(f"Setting up the environment in {folder}")
            if not usable:
                empty(folder)
                make_environment(folder)
            install(folder, extras)
            write_whole(folder / STAMP, wanted)
            say("The environment is ready.")
    return python


# ---- the steps of an installation --------------------------------------------------


def make_environment(folder):
    """Make the virtual environment, with the Python that runs this file."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise Fault(
            "this Python has no venv module. Install it (on Debian and Ubuntu: "
            "sudo apt install python3-venv) " + AGAIN
        )
    # Started from the environment itself, sys.executable has just been removed.
    base = getattr(sys, "_base_executable", None) or sys.executable
    step([base, "-m", "venv", str(folder)], folder)


def install(folder, extras):
    """Install torch and the course into the environment ``folder``."""
    wants_cuda = os.environ.get("COURSE_CUDA", "0") not in ("", "0")
    if sys.platform == "linux" and not wants_cuda and not has_torch(folder):
        say("Installing torch, in its build for CPUs ...")
        install_cpu_torch(folder)
    say("Installing the course; the first time this takes a minute or more ...")
    step([*pip_install(folder), "-e", f".[{extras}]"], folder)
    # JupyterLab would ask about news and look for updates: keep it quiet.
    news = {"fetchNews": "false", "checkForUpdates": False}
    overrides = {"@jupyterlab/apputils-extension:notification": news}
    settings = folder / "share/jupyter/lab/settings"
    settings.mkdir(parents=True, exist_ok=True)
    write_whole(settings / "overrides.json", json.dumps(overrides) + "\n")


def install_cpu_torch(folder):
    """Install the CPU build of torch: by uv, or else by a pip that refuses CUDA.

    uv knows where PyTorch keeps its CPU builds; it is asked once, and stays out of
    the environment. pip takes what its own index has, if that comes without CUDA.
    """
    torch = "torch==" + torch_pin()
    with tempfile.TemporaryDirectory() as name:
        uv = [f"{name}/bin/uv", "pip", "install", "--python", str(python_of(folder))]
        uv += ["--torch-backend", "cpu", "-c", str(CONSTRAINTS), torch]
        hasty = {"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "10"}
        call([*pip_install(folder), "--target", name, "uv"], folder)
        if os.path.exists(uv[0]) and call(uv, folder, **hasty)[0] == 0:
            return
        say("PyTorch's own index is out of reach; asking pip for torch ...")
        refusal = Path(name, "without-cuda.txt")
        refusal.write_text(without_cuda(CONSTRAINTS.read_text("utf-8")), "utf-8")
        step([*pip_install(folder, refusal), torch], folder)


def torch_pin():
    """Return the version of torch in constraints.txt."""
    found = re.search(r"^torch==(\S+)", CONSTRAINTS.read_text("utf-8"), re.MULTILINE)
    if not found:
        raise Fault("constraints.txt has no line torch==VERSION. Put it back " + AGAIN)
    return found[1]


def has_torch(folder):
    """Tell whether the environment holds the torch of constraints.txt."""
    ask = "import importlib.metadata as m; print(m.version('torch').split('+')[0])"
    code, output = call([str(python_of(folder)), "-c", ask], folder)
    return code == 0 and output.strip() == torch_pin()


def without_cuda(text):
    """Return constraints in which each CUDA package has a version that is not."""
    cuda = r"^((?:nvidia|cuda)-[\w.-]+|triton)==[^\s;]+"
    return re.sub(cuda, r"\1<0", text, flags=re.MULTILINE)


def pip_install(folder, constraints=CONSTRAINTS):
    """Return the start of a ``pip install`` under the constraints."""
    pip = [str(python_of(folder)), "-m", "pip", "install", "-c", str(constraints)]
    return [*pip, "--retries", "2", "--disable-pip-version-check"]


def step(command, folder):
    """Run a command that must succeed, or raise the Fault that says why it did not."""
    code, output = call(command, folder)
    if code:
        raise Fault(reason(output, folder))


def call(command, folder, **environment):
    """Run a command, log what it printed, and return its exit code and its output."""
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**child_environment(folder), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        close_fds=False,  # the lock goes along, see try_lock
    )
    with contextlib.suppress(OSError):  # a full disk: the reason matters, not the log
        log = (folder / LOG).open("a", encoding="utf-8")
        with log:
            log.write("$ " + " ".join(command) + "\n" + done.stdout + "\n")
    return done.returncode, done.stdout


def child_environment(folder):
    """Return the environment variables for what runs inside ``folder``."""
    strangers = ("PYTHONHOME", "PYTHONPATH", "MPLBACKEND", "PIP_USER", "PIP_TARGET")
    variables = {k: v for k, v in os.environ.items() if k not in strangers}
    variables["VIRTUAL_ENV"] = str(folder)
    path = os.pathsep.join((str(python_of(folder).parent), variables.get("PATH", "")))
    variables.update(
        PATH=path,
        JUPYTER_PREFER_ENV_PATH="1",  # this kernel, not one in the reader's home
        PYDEVD_DISABLE_FILE_VALIDATION="1",  # a warning of the debugger on 3.11
    )
    return variables


def reason(output, folder):
    """Say in one plain sentence why the command that printed ``output`` failed."""

    def has(pattern):
        return re.search(pattern, output, re.IGNORECASE)

    if has(FULL):
        return full_disk(folder)
    if has(DENIED):
        return denied(folder)
    if has(CUDA):
        return CUDA_REFUSED
    if has(OFFLINE):
        return NO_NETWORK
    missing = has(r"No matching distribution found for (\S+)")
    if missing:
        python = "Python {}.{}".format(*sys.version_info[:2])
        return (
            f"the package index has no {missing[1]} for {python} on this system. Try "
            "another Python from 3.11 on, or see that pip may use its index."
        )
    last = "\n    ".join(output.strip().splitlines()[-8:])
    return (
        f"the installation failed, and ended with\n    {last}\nRun the same command "
        f"again to start afresh; all that was printed is in {folder / LOG}"
    )


def full_disk(folder):
    """Return the sentence about a full disk."""
    return (
        f"the disk is full. The environment in {folder} takes 1.3 GB: make room, or "
        "name a folder on another disk in COURSE_VENV, " + AGAIN
    )


def denied(place):
    """Return the sentence about a place that may not be written."""
    return (
        f"{place} may not be written. Name a folder of your own in COURSE_VENV, or "
        "mend the permissions, " + AGAIN
    )


# ---- the commands ------------------------------------------------------------------


def become(command, variables, place=REPOSITORY):
    """Hand over to ``command``: no process of ours stays between it and the reader."""
    sys.stdout.flush()
    os.chdir(place)
    if os.name != "nt":
        os.execve(command[0], command, variables)
    # On Windows exec would give the prompt back at once, so wait there instead.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return subprocess.call(command, env=variables)


def lab(words):
    """Open JupyterLab on the repository, at the first notebook."""
    python = prepare()
    return become(lab_command(python, words), child_environment(environment_folder()))


def lab_command(python, words):
    """Return the command line of JupyterLab: localhost only, its token untouched."""
    settings = {"ServerApp.root_dir": REPOSITORY, "ServerApp.ip": "127.0.0.1"}
    first = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))[:1]
    if first and not any(word.endswith(".ipynb") for word in words):
        settings["LabApp.default_url"] = f"/lab/tree/notebooks/{first[0].name}"
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        settings["ServerApp.allow_root"] = True  # in a container often the only user
    command = [str(python), "-m", "jupyterlab"]
    for name, value in settings.items():
        alias = rf"--(\w+\.)?{name.partition('.')[2]}(=|$)"
        if not any(re.match(alias, word) for word in words):  # twice is an error there
            command.append(f"--{name}={value}")
    return [*command, *words]


def test(words):
    """Run unit tests, doctests, notebook guards and the notebooks themselves.

    All of it on two cores where there are two, a file on one; what is chosen by words
    on one, where a debugger can be asked for.
    """
    python = prepare(TEACHERS)
    variables = {**child_environment(environment_folder()), **REPEATABLE}
    if not words and (os.cpu_count() or 1) > 1:
        words = ["-n", "2", "--dist", "loadfile"]
    return become([str(python), "-m", "pytest", *words], variables)


def refresh(words):
    """Execute notebooks again and write them so that a second run changes no byte."""
    paths = [str(path) for path in chosen_notebooks(words)]
    python = prepare()
    variables = {**child_environment(environment_folder()), **REPEATABLE}
    return become(
        [str(python), str(REPOSITORY / "run.py"), "_refresh", *paths], variables
    )


def chosen_notebooks(names):
    """Return the notebooks meant by paths or stems; all of both folders for none."""
    folders = (REPOSITORY / "notebooks", REPOSITORY / "solutions")
    known = [path for folder in folders for path in sorted(folder.glob("*.ipynb"))]
    chosen = []
    for name in names:
        at = Path(name).resolve()
        found = [at] if at.is_file() else [path for path in known if path.stem == name]
        if not found:
            stems = ", ".join(sorted({path.stem for path in known})) or "none yet"
            raise Fault(f"{name} is not a notebook. Give a path, or one of: {stems}")
        chosen += found
    return chosen if names else known


def refresh_here(words):
    """Execute the notebooks under the Python of the environment, which has nbclient."""
    failed = 0
    for path in map(Path, words):
        start = time.monotonic()
        try:
            changed = refresh_notebook(path)
        except Fault as fault:
            failed += 1
            print(
                f"run.py: {path.name}: {fault} It is left as it was.", file=sys.stderr
            )
            continue
        seconds = time.monotonic() - start
        say(f"{path.name}: {'changed' if changed else 'the same'}, {seconds:.1f} s")
    return 1 if failed else 0


def refresh_notebook(path):
    """Execute one notebook and write it if that changes it; return whether it did."""
    import nbformat
    from nbclient import NotebookClient, exceptions

    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    started = []
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",  # whatever the file says
        extra_arguments=["--log-level=ERROR"],  # it warns of an unencrypted port
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_execute=lambda cell, cell_index: started.append(cell),
    )
    try:
        client.execute()
    except exceptions.CellExecutionError as error:
        problem = f"raised {error.ename}: {error.evalue}"
        raise Fault(f"{named(started)} {problem.rstrip('.')}.") from None
    except exceptions.CellTimeoutError:
        raise Fault(f"{named(started)} took more than ten minutes.") from None
    except exceptions.DeadKernelError:
        raise Fault(f"{named(started)} ended the kernel.") from None
    tidy(notebook, started)
    after = nbformat.writes(notebook) + "\n"
    if after != before:
        write_whole(path, after)
    return after != before


def named(cells):
    """Name the last of the code cells run so far as its reader would look for it."""
    first_line = cells[-1].source.strip().split("\n")[0] if cells else ""
    return f"code cell {len(cells)} ({first_line})"


def tidy(notebook, cells):
    """Drop from an executed notebook all that differs from one run to the next."""
    notebook.metadata.update(
        kernelspec={
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
            "name": "python3",
        },
        language_info={"name": "python"},
    )
    notebook.metadata.pop("widgets", None)
    for count, cell in enumerate(cells, start=1):
        cell.metadata.pop("execution", None)
        for output in cell.outputs:
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
            if output.get("name") == "stderr":
                problem = f"printed to stderr: {output.text.strip()[:200]}"
                raise Fault(f"{named(cells[:count])} {problem}.")
        cell.outputs = merged(cell.outputs)


def merged(outputs):
    """Join neighbouring pieces of a stream: how it was cut up is a matter of timing."""
    kept = []
    for output in outputs:
        last = kept[-1] if kept else {}
        if output.output_type == "stream" == last.get("output_type"):
            last["text"] += output.text
        else:
            kept.append(output)
    return kept


def release(words):
    """Stamp address and version wherever they stand, and build a wheel into dist/."""
    python, folder = prepare(TEACHERS), environment_folder()
    command = [str(python), "-m", "coursekit.classroom.release", str(REPOSITORY)]
    variables = {**child_environment(folder), **REPEATABLE}
    done = subprocess.run([*command, *words], cwd=REPOSITORY, env=variables)
    if done.returncode or not {"--check", "-h", "--help"}.isdisjoint(words):
        return done.returncode
    place = REPOSITORY / "dist"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as name:
        wheel = [str(python), "-m", "pip", "wheel", "--no-deps", "-w", name, "."]
        step([*wheel, "--retries", "2", "--disable-pip-version-check"], folder)
        for made in Path(name).glob("*.whl"):
            os.replace(made, place / made.name)
            say(f"dist/{made.name}: built")
    return 0


def exercises(words):
    """Make exercise notebooks from the solutions."""
    return classroom("exercises", words)


def grade(words):
    """Grade a folder of submissions, where the caller stands."""
    return classroom("grade", words)


def classroom(module, words):
    """Run a module of coursekit.classroom on the solutions, in the caller's folder."""
    python, here = prepare(TEACHERS), os.getcwd()
    variables = {**child_environment(environment_folder()), **REPEATABLE}
    command = [str(python), "-m", f"coursekit.classroom.{module}"]
    return become([*command, str(REPOSITORY / "solutions"), *words], variables, here)


# ---- the doctor --------------------------------------------------------------------

SHOWN = ("torch", "numpy", "matplotlib", "jupyterlab", "ipywidgets")
PROBE = """
import importlib.metadata, importlib.util, json, pathlib, re
versions = {}
for found in importlib.metadata.distributions():
    name = re.sub("[-_.]+", "-", found.metadata["Name"] or "").lower()
    versions[name] = sorted({*versions.get(name, ()), found.version})
course = importlib.util.find_spec("coursekit")
torch, cuda = importlib.util.find_spec("torch"), None
if torch and torch.origin:
    text = pathlib.Path(torch.origin).with_name("version.py").read_text("utf-8")
    cuda = re.search("^cuda.*= *'([^']+)'", text, re.MULTILINE)
try:
    from jupyter_client.kernelspec import KernelSpecManager
    kernel = KernelSpecManager().get_kernel_spec("python3").argv[0]
except Exception:
    kernel = ""
print(json.dumps({"versions": versions, "course": course and course.origin,
                  "cuda": cuda and cuda[1], "kernel": kernel}))
"""


def doctor(words):
    """Say what this set-up is made of, and what is wrong with it; install nothing."""
    if words:
        raise Fault(f"doctor takes no further words, but there is {words[0]}.")
    folder = environment_folder()
    try:
        state, usable, faults = examine(folder)
    except Fault as fault:
        state, usable, faults = "not usable", False, [str(fault)]
    found = probe(folder) if usable else {}
    if found:
        faults += package_faults(folder, found)
    elif usable:
        faults.append(f"{python_of(folder)} does not run. {anew(folder)}")
    faults += surrounding_faults(folder, usable)
    for name, value in particulars(folder, state, found).items():
        say(f"{name:<12} {value}")
    for fault in faults:
        say(f"fault: {fault}")
    say(f"{len(faults)} to mend." if faults else "No fault found.")
    return 1 if faults else 0


def anew(folder):
    """Return the sentence that mends an environment which somebody changed."""
    return f"Remove the folder {folder}, and run: python run.py lab"


def examine(folder):
    """Return the state of an environment, whether it can be probed, and its faults."""
    refuse_foreign(folder)
    stamp, wanted = read_stamp(folder), wanted_stamp(folder)
    if not stamp:
        return "none yet; python run.py lab makes it", False, []
    if stamp == UNFINISHED:
        with contextlib.suppress(OSError), open(folder / LOCK, "r+b") as lock:
            if not try_lock(lock):
                return "being set up by another run.py", False, []
        fault = f"the set-up of {folder} was stopped half-way."
        return "unfinished", False, [fault + " Run: python run.py lab"]
    if not python_of(folder).exists():
        fault = f"{folder} has lost its Python."
        return "broken", False, [fault + " Run, to make it again: python run.py lab"]
    if stamp in (wanted, wanted_stamp(folder, TEACHERS)):
        return "ready", True, []
    return "outdated", True, [outdated(folder, stamp.split("\n"), wanted.split("\n"))]


def outdated(folder, stamp, wanted):
    """Say what an environment was made for, and what brings it up to date."""
    if stamp[0] != wanted[0]:
        return (
            f"{folder} was made for {stamp[0]}, and this is {wanted[0]}. Start run.py "
            "with that one, or make the environment again by: python run.py lab"
        )
    if stamp[1] != wanted[1]:
        return (
            f"{folder} was made as {stamp[1]} and moved. Run, to make it again: "
            "python run.py lab"
        )
    return (
        f"{folder} is older than pyproject.toml or constraints.txt. Run, to bring it "
        "up to date: python run.py lab"
    )


def probe(folder):
    """Ask the Python of an environment what it would import; {} if it cannot say."""
    try:
        done = subprocess.run(
            [str(python_of(folder)), "-P", "-c", PROBE],
            env=child_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            timeout=120,
        )
        return json.loads(done.stdout) if done.returncode == 0 else {}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}


def package_faults(folder, found):
    """Return the faults among the packages of an environment."""
    faults = []
    for name, versions in sorted(found["versions"].items()):
        if len(versions) > 1:
            two = " and ".join(versions)
            faults.append(f"{name} is there in two versions, {two}. {anew(folder)}")
    for name in SHOWN:
        has, tested = found["versions"].get(name, []), pins(name)
        if len(has) < 2 and not tested & {version.split("+")[0] for version in has}:
            told = has[0] if has else "missing"
            right = " or ".join(sorted(tested)) or "no version"
            faults.append(f"{name} is {told}, and {right} is tested. {anew(folder)}")
    if found["course"] != str(REPOSITORY / "coursekit" / "__init__.py"):
        place = found["course"] or "nowhere"
        faults.append(
            f"coursekit is imported from {place}, and not from {REPOSITORY}. "
            + anew(folder)
        )
    if found["cuda"] and os.environ.get("COURSE_CUDA", "0") in ("", "0"):
        faults.append(
            f"torch is the build for CUDA {found['cuda']}, which the course does not "
            f"need. Keep it by COURSE_CUDA=1, or get the CPU build: {anew(folder)}"
        )
    kernel = Path(found["kernel"])
    if kernel.stem not in ("python", "python3") or (
        kernel.is_absolute() and kernel.parent != python_of(folder).parent
    ):
        told = found["kernel"] or "missing"
        faults.append(f"the notebooks' kernel python3 is {told}. {anew(folder)}")
    return faults


def pins(name):
    """Return the versions of a package in constraints.txt: one, or one per Python."""
    text = CONSTRAINTS.read_text("utf-8")
    return set(re.findall(rf"^{re.escape(name)}==([^\s;]+)", text, re.MULTILINE))


def surrounding_faults(folder, usable):
    """Return the faults around an environment: the disk, the shell and its jupyter."""
    faults = []
    free = free_bytes(folder)
    if free < 2e9:
        faults.append(
            f"the disk of {folder} has {free / 1e9:.1f} GB left, and 2 GB are needed. "
            "Make room, or name a folder on another disk in COURSE_VENV."
        )
    for name in ("PYTHONPATH", "PYTHONHOME"):
        if os.environ.get(name):
            faults.append(
                f"{name} is set to {os.environ[name]}, so that other packages may come "
                f"before the environment's. Remove it from your shell: unset {name}"
            )
    jupyter = shutil.which("jupyter")
    if usable and jupyter and Path(jupyter).parent != python_of(folder).parent:
        faults.append(
            f"the word jupyter starts {jupyter}, of another environment, whose kernel "
            "does not know the course. Open it, instead, by: python run.py lab"
        )
    return faults


def free_bytes(folder):
    """Return the free space of the disk that holds, or will hold, the folder."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def particulars(folder, state, found):
    """Return what a report of a problem should name, in order."""
    init = REPOSITORY / "coursekit" / "__init__.py"
    text = init.read_text("utf-8") if init.is_file() else ""
    version = re.search(r'__version__ = "(.+)"', text)
    told = {"course": f"{version[1] if version else 'no version'}, in {REPOSITORY}"}
    told["Python"] = f"{platform.python_version()}, {sys.executable}"
    told["environment"] = f"{folder}: {state}"
    for name in SHOWN:
        has = found.get("versions", {}).get(name)
        told[name] = " and ".join(has) if has else "not known" if not found else "none"
    told["system"] = f"{platform.platform()}, {os.cpu_count()} cores"
    told["free disk"] = f"{free_bytes(folder) / 1e9:.1f} GB"
    told["bubblewrap"] = shutil.which("bwrap") or "none; run.py grade works better with"
    return told


COMMANDS = {
    "lab": lab,
    "test": test,
    "refresh": refresh,
    "exercises": exercises,
    "grade": grade,
    "release": release,
    "doctor": doctor,
}


def main(words):
    """Run the command that ``words`` begin with and return the exit code."""
    if not words or words[0] in ("-h", "--help", "help"):
        say(__doc__.strip())
        return 0
    command, *rest = words
    try:
        if command == "_refresh":  # refresh calls this, inside the environment
            return refresh_here(rest)
        if command not in COMMANDS:
            known = ", ".join(COMMANDS)
            print(f"run.py: no command {command}. Known: {known}.", file=sys.stderr)
            return 2
        return COMMANDS[command](rest)
    except Fault as fault:
        sentence = str(fault)
    except OSError as error:
        sentence = f"{error.strerror or error}: {error.filename}. Mend that " + AGAIN
        if error.errno in (errno.ENOSPC,):
            sentence = full_disk(environment_folder())
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            sentence = denied(error.filename or environment_folder())
    except KeyboardInterrupt:
        print("run.py: stopped. The next run starts afresh.", file=sys.stderr)
        return 130
    print(f"run.py: {sentence}", file=sys.stderr)
    return 1


def interrupt(signal_number, frame):
    """Take a polite kill like Ctrl-C, so that a running pip is ended as well."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)
    for output_stream in (sys.stdout, sys.stderr):
        output_stream.reconfigure(errors="backslashreplace")  # any path can be said
    sys.exit(main(sys.argv[1:]))
