"""The unpacked archive: its contents, its programs, findings in one JSON file, and the time that a stage may take."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

LIMIT = 7.5 * 60  # seconds of a stage: what is under way is stopped then
WORDS = {True: "ok  ", False: "FAIL", None: "-   "}  # of a finding that held, that did not, of which nothing can be said
SHORT = 5  # seconds: with less left nothing is begun


class Ending:
    """Whether this process was told to end. It does so between programs, or within a second while one runs: an exception at
    any time could come when a program has just been started and no one knows it yet."""

    told = False

    @classmethod
    def listen(cls):
        signal.signal(signal.SIGTERM, lambda *_: setattr(cls, "told", True))

    @classmethod
    def heed(cls):
        if cls.told:
            sys.exit(128 + signal.SIGTERM)


class Deadline:
    """What is left of a stage."""

    def __init__(self, seconds=LIMIT):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()

    def near(self):
        return self.left() < SHORT


class Results:
    """One JSON file, replaced as a whole after every finding: whenever a run is cut, what was found until then is there."""

    def __init__(self, path, emulated=False):
        self.path, self.emulated = path, emulated
        self.content = json.loads(path.read_text()) if path.exists() else {}

    def key(self, stage):
        """What the fake device finds stands apart, so that no one takes it for a measurement."""
        return f"emulated {stage}" if self.emulated else stage

    def put(self, stage, name, value):
        self.content.setdefault(self.key(stage), {})[name] = value
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.content, indent=1) + "\n")
        temporary.replace(self.path)

    def get(self, stage, name=None):
        found = self.content.get(self.key(stage), {})
        return found if name is None else found.get(name)


def prefix_of(python):
    """The folder of a Python's environment or installation; None where it does not say."""
    if python == sys.executable:
        return sys.prefix
    try:
        asked = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip() or None


class Archive:
    """The folder that the archive was unpacked to, for one target: a GPU, or the fake device.

    `python` has PyTorch, and with it NVIDIA's libraries.
    """

    def __init__(self, home, emulated=False, python=sys.executable):
        self.home = pathlib.Path(home)
        self.prefix = prefix_of(python)
        self.contents = json.loads((self.home / "contents.json").read_text())
        self.emulated = emulated
        self.target = "emulated" if emulated else "cuda"

    def models(self, only=""):
        return [row for row in self.contents["models"] if only in row["name"]]

    def workload(self, name):
        """The row of a workload; ValueError where there is none."""
        rows = {row["name"]: row for row in self.contents["workloads"]}
        if name not in rows:
            raise ValueError(f"no workload '{name}'; there are {', '.join(rows) or 'none'}")
        return rows[name]

    def folder(self, row):
        return self.home / "models" / row["name"]

    def record(self, row):
        """The folder of a model's data and recorded losses: another row's where this one trains the same in 16 bits."""
        return self.home / "models" / row.get("record", row["name"])

    def artifact(self, row, name="step", target=None):
        return self.folder(row) / f"{target or self.target}-{name}.tide"

    def has(self, row, name="step", target=None):
        return self.artifact(row, name, target).exists()

    def command(self, program, *arguments):
        return [str(self.home / "bin" / program), *map(str, arguments)]

    def environment(self, command):
        """What a command sees: our programs the libraries that came along, and NVIDIA's of an environment that is not activated.

        Another program, a Python above all, keeps its own: libraries of the archive may be older than what it was built for.
        """
        found = dict(os.environ)
        if any(pathlib.Path(part).parent == self.home / "bin" for part in command):
            found["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(self.home / "lib"), found.get("LD_LIBRARY_PATH")]))
            if self.prefix:
                found.setdefault("VIRTUAL_ENV", self.prefix)
        return found

    def run(self, command, timeout, meanwhile=lambda: None):
        """(exit status, standard output, standard error); 124 and words when it takes too long.

        `meanwhile` is called every second. Whatever ends this, nothing of the program stays behind on the GPU.
        """
        end = time.monotonic() + max(1, timeout)
        Ending.heed()
        try:
            process = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                env=self.environment(command), start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return 127, "", str(error)
        try:
            while True:
                Ending.heed()
                try:
                    out, error = process.communicate(timeout=max(0.01, min(1, end - time.monotonic())))
                    return process.returncode, out, error
                except subprocess.TimeoutExpired:
                    meanwhile()
                if time.monotonic() >= end:
                    return 124, "", f"no answer within {timeout:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
