"""What the first GPU's driver says: its name, and bytes in use, by NVML in this process or, without it, by nvidia-smi."""

import ctypes
import functools
import glob
import subprocess
import threading
import time

# Where the driver lies in some containers, whose loader does not look there.
FOLDERS = "/usr/local/nvidia/lib*/libnvidia-ml.so.1"


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


@functools.cache
def nvml():
    """(library, handle of the first GPU); None where there is none."""
    for name in ("libnvidia-ml.so.1", *glob.glob(FOLDERS)):
        try:
            library, handle = ctypes.CDLL(name), ctypes.c_void_p()
            if library.nvmlInit_v2() == 0 and library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0:
                return library, handle
        except (OSError, AttributeError):
            continue
    return None


def asked(query):
    """One answer of nvidia-smi; None where it has none."""
    command = ["nvidia-smi", "--id=0", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def used_bytes():
    """Bytes of the first GPU that are in use; None where no one can say."""
    if nvml():
        library, handle = nvml()
        memory = Memory()
        return memory.used if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0 else None
    said = asked("memory.used")
    return int(said) << 20 if said and said.isdigit() else None


def device_name():
    """The first GPU's name; None without one."""
    if nvml():
        library, handle = nvml()
        name = ctypes.create_string_buffer(96)
        return name.value.decode() if library.nvmlDeviceGetName(handle, name, len(name)) == 0 else None
    return asked("name")


class MemoryWatch:
    """The most that a GPU has in use within a `with` block, less what was in use before it: `bytes`, None if unknown.

    CUDA's own context is part of it, for every contender alike.
    """

    def __enter__(self):
        self.before, self.peak, self.done = used_bytes(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        if self.before is not None:
            self.thread.start()
        return self

    def watch(self):
        every = 0.005 if nvml() else 0.5  # seconds: a process that looks takes time from what is looked at
        while True:
            self.peak = max(self.peak, used_bytes() or 0)
            if self.done.wait(every):
                return

    def __exit__(self, *_):
        self.done.set()
        if self.before is not None:
            self.thread.join()

    @property
    def bytes(self):
        return None if self.before is None else max(0, self.peak - self.before)


def await_idle(baseline, deadline, seconds=10, slack=64 << 20):
    """Waits until the GPU's memory in use is back where it was, `seconds` at most; whether it came back."""
    end = time.monotonic() + min(seconds, max(0, deadline.left()))
    while baseline is not None and (used_bytes() or 0) > baseline + slack:
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True
