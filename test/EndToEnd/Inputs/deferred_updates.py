"""Trains with updates at the end of a step and in the next one, and compares losses, what is saved and what is exported, byte for byte.

Arguments: the folder of recorded models, a folder to work in, and `device` or `elsewhere`: where state and parameters lie.
"""

import json
import pathlib
import subprocess
import sys

MODELS, WORK = (pathlib.Path(a) for a in sys.argv[1:3])
STEPS = 5


class Pair:
    """An artifact as it always was and one whose updates wait for the next step."""

    def __init__(self, title, model, *flags, apart=(), entries="train"):
        """`apart`: flags of the second alone."""
        self.title, self.model = title, MODELS / model
        self.paths = []
        for time, more in (("now", ()), ("deferred", apart)):
            path = WORK / f"{title.replace(' ', '-').replace(',', '')}-{time}.tide"
            done = subprocess.run(["lowtide", "compile", self.model / "model.onnx", "-o", path, f"--entries={entries}", f"--updates={time}", *flags, *more],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            self.paths.append(path)

    def train(self, artifact, *flags, steps=STEPS):
        """Losses and other figures, the bytes of every file that is saved, the summary."""
        home = artifact.with_suffix("")
        command = ["lowtide-run", artifact, f"--data={self.model / 'data.npz'}", f"--steps={steps}", "--quiet", "--seed=3", f"--save={home}", "--overwrite",
                   f"--summary={home}.json", *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        summary = json.loads(pathlib.Path(f"{home}.json").read_text())
        saved = {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*.safetensors"))}
        assert saved, f"nothing saved in {home}"
        return [summary["losses"], summary.get("evaluations")], saved, summary

    def compare(self, *flags, what="same losses, same bytes"):
        """Prints whether both runs agree; the summary of the deferred one."""
        (losses, saved, _), (others, again, summary) = (self.train(path, *flags) for path in self.paths)
        differing = [name for name in saved if again.get(name) != saved[name]] + [name for name in again if name not in saved]
        verdict = what if losses == others and not differing else f"different: {losses} {others} {differing}"
        print(f"{self.title}: {verdict}")
        return summary

    def resume(self, at):
        """Ends after `at` steps, and goes on from what was saved."""
        losses, saved, _ = self.train(self.paths[0])
        artifact = self.paths[1]
        self.train(artifact, steps=at)
        others, again, _ = self.train(artifact, f"--resume={artifact.with_suffix('')}", steps=STEPS - at)
        same = losses[0][at:] == others[0] and all(saved[name] == again.get(name) for name in saved)
        print(f"{self.title}, resumed after {at}: {'same' if same else 'different'}")

    def export(self):
        files = []
        for artifact in self.paths:
            files.append(artifact.with_suffix(".onnx"))
            self.train(artifact, f"--export={files[-1]}", f"--model={self.model / 'model.onnx'}")
        print(f"{self.title}, exported: {'same' if files[0].read_bytes() == files[1].read_bytes() else 'different'}")


CLIP = "--clip-norm=1"
# 2^32 is too much for f16: the first steps are skipped, the scale is lowered until it is not.
SCALED = ["--batch=8", CLIP, "--precision=mixed-f16", "--loss-scale=dynamic,init=4294967296,backoff=0.0001,interval=2"]


def on_device():
    clipped = Pair("gpt-tiny, clipped", "gpt-tiny", "--batch=8", CLIP, entries="train,eval,gradient")
    clipped.compare()
    # A checkpoint and an evaluation between steps make the update that is pending, and the next step makes none.
    clipped.compare("--checkpoint-every=2", what="saved every 2 steps, same bytes")
    clipped.compare(f"--eval-data={MODELS / 'gpt-tiny' / 'data.npz'}", "--eval-every=2", what="evaluated every 2 steps, same")
    clipped.compare("--on-nonfinite=skip", what="a copy before each step, same bytes")
    for at in (1, 3):
        clipped.resume(at)
    clipped.export()
    Pair("mlp-digits, by value", "mlp-digits", "--batch=16", "--clip-value=0.01", "--optimizer=momentum", "--lr=0.1", "--schedule=cosine", "--total-steps=5").compare()
    Pair("cnn-digits", "cnn-digits", "--batch=16", CLIP).compare()
    summary = Pair("gpt-tiny, scaled, steps skipped", "gpt-tiny", *SCALED).compare()
    assert 0 < summary["skipped_steps"] < STEPS, summary
    Pair("gpt-dropout, in parts, averaged", "gpt-dropout", "--batch=8", CLIP, "--micro-batches=2", "--ema=0.9").compare()
    Pair("gpt-tiny, split masters, 8-bit moments", "gpt-tiny", "--batch=8", CLIP, "--precision=mixed-bf16", "--master=split", "--moments=int8").compare()
    Pair("gpt-tiny, muon, unclipped", "gpt-tiny", "--batch=8", "--optimizer=muon").compare()
    Pair("gpt-tiny, drawn masters", "gpt-tiny", "--batch=8", CLIP, "--precision=bf16", "--master=sr").compare()


def elsewhere(title, model, *flags, evaluates=False):
    pair = Pair(title, model, *flags, entries="train,eval" if evaluates else "train")
    summary = pair.compare()
    if "budget" in " ".join(flags):
        moved = summary["moved"]
        assert moved["from_device_bytes"] and moved["to_device_bytes"], moved
    pair.resume(2)
    if evaluates:
        pair.compare(f"--eval-data={MODELS / model / 'data.npz'}", "--eval-every=2", what="evaluated every 2 steps, same")


if sys.argv[3] == "device":
    on_device()
else:
    elsewhere("file", "gpt-tiny", "--batch=8", CLIP, "--device-budget=1000000", "--disk-budget=1GiB", evaluates=True)
    elsewhere("file, scaled, in parts", "gpt-tiny", *SCALED, "--micro-batches=2", "--device-budget=900000", "--disk-budget=1GiB")
    elsewhere("cuda-emulated", "gpt-tiny", "--batch=4", CLIP, "--target=cuda-emulated")
    elsewhere("cuda-emulated, host", "gpt-tiny", "--batch=4", CLIP, "--target=cuda-emulated", "--device-budget=600000", "--host-budget=1GiB", evaluates=True)
