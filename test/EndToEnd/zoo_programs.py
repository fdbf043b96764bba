"""Small programs of the zoo, as PyTorch's exporters write them, train as PyTorch does: zoo_programs.py <folder of binaries> [--full]; in the
environment of `tools/dev setup --oracles`.

Each is a kind of code that was silently other than its program once. What trains is also held to itself in other forms: for the emulated
device, in 16 bits, in parts, under budgets. Prints a list of {name, complaint}.
"""

import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from devkit import zoo, zoo_forms  # noqa: E402

# (program, exports, weights as PyTorch draws them, what each file comes to); those of the short check first.
CASES = [
    ("loop-selective", "dynamo", False, "holds"),
    ("select-edges-attended", "train", False, "holds"),
    ("zero-cosine", "train dynamo", False, "holds"),
    ("report-gates-by-index", "train", True, "warns"),
    ("elastic", "dynamo", False, "holds"),
    ("cosine-eps", "train dynamo", False, "holds"),
    ("report-lasso", "train dynamo", False, "holds"),
    ("report-lasso-vector", "dynamo", False, "holds"),
    ("zero-angle-axis", "train dynamo", False, "holds"),
    ("zero-phase", "train dynamo", False, "holds"),
    ("gru-stacked", "train", False, "holds"),
    ("columns", "train dynamo", False, "holds"),
    ("columns-apart", "dynamo", False, "holds"),
    ("rows-added", "train dynamo", False, "holds"),
    ("experts-turned", "dynamo", False, "holds"),
    ("autocast-off", "dynamo plain", False, "holds"),
    ("autocast-off-norm", "dynamo plain", False, "holds"),
    ("autocast-off-loss", "dynamo", False, "holds"),
    ("autocast-off-factor", "dynamo", False, "warns"),
    ("detached-ratio", "dynamo", False, "holds"),
    ("detached-target", "dynamo", False, "holds"),
    ("learned-query-repeated", "dynamo", False, "holds"),
    ("learned-keys-values", "dynamo", False, "holds"),
    ("learned-places", "dynamo", False, "holds"),
    ("learned-mixture-gate", "dynamo", False, "holds"),
    ("learned-gate-rest", "dynamo", False, "holds"),
    ("learned-memory", "dynamo", False, "holds"),
    ("constant-mask-empty-row", "dynamo", False, "holds"),
    ("learned-states", "dynamo", False, "holds"),
    ("learned-pairs", "dynamo", False, "warns"),
    ("learned-heads-expanded", "dynamo", False, "warns"),
    ("transformer", "dynamo", True, "holds"),
    ("report-uncertain-tasks", "train", True, "warns"),
    ("batch-twice", "dynamo", True, "warns"),
    ("report-factors", "train", False, "warns"),
    ("report-dynamic-kernels", "dynamo", False, "warns"),
    ("flow-cond", "dynamo", False, "holds"),
    ("fake-quantized-weight-7", "train dynamo", False, "holds"),
    ("fake-quantized-values", "train dynamo", False, "holds"),
    ("order-norm", "traced", False, "holds"),
    ("concatenated-weight", "dynamo", False, "refused"),
    ("lstm-projected", "dynamo", False, "refused"),
    ("script-soft-actor", "dynamo", False, "holds"),
    ("kind-norm-shared-scale", "dynamo", False, "holds"),
    ("moved-tanh-expanded", "dynamo", False, "holds"),
    ("moved-mean-expanded", "dynamo", False, "warns"),
    ("moved-negative-joined", "dynamo", False, "warns"),
    ("moved-negative-joined-next", "dynamo", False, "refused"),
    ("moved-sigmoid-turned", "dynamo", False, "holds"),
    ("word-mask", "train", False, "warns"),
    ("loop-lstm", "train dynamo", False, "holds"),
    ("loop-attention", "dynamo", False, "holds"),
    ("loop-both", "train", False, "holds"),
    ("loop-weighted-mean", "dynamo", False, "holds"),
    ("loop-penalty", "dynamo", False, "holds"),
    ("loop-masked-words", "dynamo", False, "holds"),
    ("loop-truncated", "dynamo", False, "holds"),
    ("loop-euler", "dynamo", False, "holds"),
    ("loop-denoised", "train", False, "holds"),
    ("rnn-long", "dynamo", False, "holds"),
    ("drop-2d", "plain", False, "holds"),
    ("drop-attention", "dynamo", False, "holds"),
    ("drop-waves", "dynamo", False, "warns"),
    ("coordinates-repeated", "dynamo", False, "warns"),
    ("drop-alpha", "dynamo plain", False, "holds"),
    ("strange-dropout-modules", "dynamo", False, "holds"),
    ("strange-part-written", "dynamo plain", False, "holds"),
    ("strange-part-moved", "dynamo", False, "warns"),
    ("strange-two-blocks", "dynamo plain", False, "holds"),
    ("strange-largest", "dynamo", False, "holds"),
    ("instance-tracked", "eval", False, "warns"),
    ("strange-net-fixed-norms", "train13-unfolded", False, "holds"),
    ("strange-net-dino", "train", False, "warns"),
    ("begin-experts-copied", "decomposed", False, "warns"),
    ("select-labels", "train", False, "holds"),
    ("select-logarithm", "train plain", False, "holds"),
    ("select-assigned", "train dynamo", False, "holds"),
    ("select-overwritten", "train13-unfolded dynamo", False, "holds"),
    ("select-written", "train13-unfolded dynamo", False, "holds"),
    ("select-pooled", "train dynamo", False, "holds"),
    ("select-covariance", "dynamo", False, "holds"),
    ("select-joined", "dynamo", False, "holds"),
    ("select-edges", "train dynamo", False, "holds"),
    ("select-edges-laplacian", "dynamo", False, "holds"),
    ("select-edges-closed", "dynamo", False, "holds"),
    ("select-experts", "train dynamo", False, "holds"),
    ("select-batch-norm", "train", False, "holds"),
    ("select-group", "train dynamo", False, "holds"),
    ("select-shares", "train", False, "holds"),
    ("select-filled", "train", False, "holds"),
    ("select-attending", "train", False, "refused"),
]
SHORT = 4


def main(binaries, full):
    rows = []
    maker = zoo.Maker(sys.executable, ["programs"])
    with tempfile.TemporaryDirectory() as scratch:
        for program, exports, fresh, wanted in CASES[: None if full else SHORT]:
            folder = pathlib.Path(scratch) / program
            folder.mkdir()
            lines, words = maker.make(name=f"programs/{program}", folder=str(folder), exports=exports.split(), cleaners=[], fresh=fresh)
            if words:
                rows.append({"name": program, "complaint": words})
            for line in lines:
                if line["file"] == "record.npz" and line["state"] == "written":
                    continue
                state, said, _ = (line["state"], line["words"], []) if line["state"] != "written" else zoo.judge(binaries, folder, line["file"], 120, [])
                complaint = "" if state == wanted else f"{state}, not {wanted}: {said}"
                if state in ("holds", "warns"):
                    complaint = complaint or zoo_forms.compare(binaries, folder, line["file"], [])
                rows.append({"name": f"{program}/{line['file']}", "complaint": complaint})
    print(json.dumps(rows))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), "--full" in sys.argv)
