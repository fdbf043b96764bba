"""gpt-tiny compiled and trained with and without another memory, for the scripts next to this one.

Arguments of those: the folder of recorded models, a folder to work in.
"""

import json
import pathlib
import re
import subprocess
import sys

MODELS, WORK = (pathlib.Path(a) for a in sys.argv[1:3])
MODEL = MODELS / "gpt-tiny"
STEPS = 4


def compile(name, *flags, entries="train", optimizer="adamw"):
    done = subprocess.run(["lowtide", "compile", MODEL / "model.onnx", "-o", WORK / name, f"--optimizer={optimizer}", f"--entries={entries}", *flags],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return WORK / name


def train(artifact, *flags, steps=STEPS, model=MODEL):
    """Losses, the bytes of what is saved, and the summary."""
    home = artifact.with_suffix("")
    subprocess.run(["lowtide-run", artifact, f"--data={model / 'data.npz'}", f"--steps={steps}", "--quiet", "--poison", "--seed=3",
                    f"--save={home}", "--overwrite", f"--summary={home}.json", f"--log-jsonl={home}.jsonl",
                    *flags], check=True, capture_output=True)
    summary = json.loads(pathlib.Path(f"{home}.json").read_text())
    saved = {path.name: path.read_bytes() for path in sorted(home.rglob("*.safetensors"))}
    assert saved, f"nothing saved in {home}"
    return summary["losses"], saved, summary


def logged_steps(artifact):
    """The steps of --log-jsonl that the last `train` of an artifact wrote."""
    rows = map(json.loads, artifact.with_suffix(".jsonl").read_text().splitlines())
    return [row for row in rows if "step" in row]


def compare(title, whole, moved, *flags, model=MODEL):
    losses, saved, before = train(whole, *flags, model=model)
    others, again, summary = train(moved, *flags, model=model)
    same = losses == others and saved == again and before.get("evaluations") == summary.get("evaluations")
    step = summary.get("moved", {})
    print(f"{title}: {'same' if same else 'different'}, {'moved' if step.get('from_device_bytes') and step.get('to_device_bytes') else 'nothing moved'}")
    return summary


def places(artifact):
    """The arenas of the parameters by the plan: name → arena."""
    told = subprocess.run(["lowtide", "explain", artifact, "*weight"], check=True, capture_output=True, text=True).stdout
    return dict(re.findall(r"^param (\S+)\n.* of the arena (\S+), in every entry", told, re.MULTILINE))
