"""Where `lowtide explain` says that a tensor flips, plans at those budgets say the same. explain_flips.py <model.onnx> <flags>… <folder>"""

import collections
import re
import subprocess
import sys

FLIP = re.compile(r"where it flips: (\w+).* with a budget of (?:.*\()?(\d+) bytes\)?, and not with (?:.*\()?(\d+) bytes")
DECIDED = {"recomputed": r"  recomputed: costs", "stored": r"  stored in space"}
MOST_BUDGETS = 4


def explain(model, flags, budget, folder, *more):
    """Of each layer what is said of its tensors in the plan at the budget."""
    artifact = f"{folder}/{budget}.tide"
    command = ["lowtide", "compile", model, *flags, f"--device-budget={budget}", "-q", "-o", artifact, *more]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    text = subprocess.run(["lowtide", "explain", artifact, "*"], capture_output=True, text=True, check=True).stdout
    texts = collections.defaultdict(list)
    for part in text.split("\n@train #")[1:]:
        head, _, rest = part.partition("\n")
        # A part of an instruction that runs again is another kernel of the same layer.
        texts[head.rpartition(" · ")[2]].append(rest)
    return texts


def count(texts, name, decision):
    """Of the tensors of a layer how many it is taken of; kept is what is neither recomputed nor stored: fewer of those."""
    if decision == "kept":
        return -sum(count(texts, name, other) for other in DECIDED)
    return sum(bool(re.search(DECIDED[decision], text)) for text in texts[name])


def main(model, *flags, folder):
    *flags, budget = flags
    texts = explain(model, flags, budget, folder, "--flips=on")
    flips = sorted(
        {
            (name, *match.groups())
            for name, found in texts.items()
            for text in found
            for match in FLIP.finditer(text)
        }
    )
    looked = [pair for pair, _ in collections.Counter(flip[2:] for flip in flips).most_common(MOST_BUDGETS)]
    flips = [flip for flip in flips if flip[2:] in looked]
    plans = {at: explain(model, flags, at, folder) for pair in looked for at in pair}
    wrong = 0
    for name, decision, there, nearer in flips:
        if count(plans[there], name, decision) <= count(plans[nearer], name, decision):
            wrong += 1
            print(f"{name}: {decision} at {there} and not at {nearer}?")
    print(f"{len(flips)} flips, to {', '.join(sorted({flip[1] for flip in flips}))}; {wrong} wrong")


main(*sys.argv[1:-1], folder=sys.argv[-1])
