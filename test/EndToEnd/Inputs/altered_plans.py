"""Plans of today, each with one thing in its text that an attacker, or a defect, would change: altered_plans.py <folder>, tools on the path.

Each is refused where a plan is proved, by the rule that it breaks: the runtime's loader proves with the same code
(test/Unit/Runtime/Verify*Test.cpp, ArtifactTest.cpp).
"""

import pathlib
import re
import subprocess
import sys

MODEL = pathlib.Path(__file__).parent / "two-layers.onnx"
PLANS = {
    "whole": ["--batch=4", "--optimizer=momentum"],
    "parts": ["--batch=8", "--optimizer=momentum", "--micro-batches=4"],
    "emulated": ["--batch=4", "--optimizer=momentum", "--target=cuda-emulated"],
}


def programs(text, change):
    """The text with each program's lines changed: `change` gets a program's name and text."""
    parts = re.split(r"(?m)(?=^    plan\.program )", text)
    return parts[0] + "".join(change(re.match(r"    plan\.program @(\w+)", part)[1], part) for part in parts[1:])


def bind(line, only=("eval", "train")):
    """Adds a binding before those of the programs; {NAME} becomes what is bound to the name there."""

    def change(name, part):
        if name not in only:
            return part
        filled = re.sub(r"\{(.*?)\}", lambda m: re.search(rf'plan\.binding \w+ "{re.escape(m[1])}" tensor<[^>]*> (@\w+\[\d+ \+ \d+\] : \d+)', part)[1], line)
        return part.replace("      plan.binding ", f"      {filled}\n      plan.binding ", 1)

    return lambda text: programs(text, change)


def put(pattern, new, program=None, count=1):
    """Exchanges the first match of a pattern, in one program or the whole."""

    def change(name, part):
        if program not in (None, name):
            return part
        changed, found = re.subn(pattern, new, part, count=count)
        assert found or program is None, f"{pattern} is not in @{name}"
        return changed

    def whole(text):
        changed, found = re.subn(pattern, new, text, count=count)
        assert found, f"{pattern} is nowhere"
        return changed

    return whole if program is None else lambda text: programs(text, change)


def both(*changes):
    def change(text):
        for one in changes:
            text = one(text)
        return text

    return change


def exchange_kernels(text):
    """The first launch of a kernel becomes one of another kernel with as many operands and results."""
    kernels = {}
    for name, counts in re.findall(r"plan\.kernel @(\w+) (reads \d+ writes \d+)", text):
        kernels.setdefault(counts, []).append(name)
    one, other = next(names[:2] for counts, names in kernels.items() if len(names) > 1 and "reads 0" not in counts)
    return text.replace(f"plan.launch @{one} ", f"plan.launch @{other} ", 1)


OVER_STATE = r"\1      plan.fill @state[0 + 512] : 5000 pattern 0 of 4\n"
LAST_BINDING = r"((?:      plan\.binding .*\n)+)"
# Name, plan, change, what the refusal says.
ALTERED = [
    ("a batch array lies on a parameter", "whole", bind('plan.binding batch "again" tensor<8x16xf32> {hidden.weight} -> 3 batch_dim 0'),
     "binding 'again': ends with the step but lies in arena 'params', which outlives it"),
    ("a batch array lies on state", "whole", bind('plan.binding batch "again" tensor<3xf32> {head.bias.momentum_buffer} -> 9 batch_dim 0', ["train"]),
     "binding 'again': ends with the step but lies in arena 'state', which outlives it"),
    ("two batch arrays lie on one place", "whole", bind('plan.binding batch "again" tensor<4x16xf32> {pixels} -> 1 batch_dim 0'), "shares bytes with another binding"),
    ("a scalar lies on a parameter", "whole", bind('plan.binding scalar "rate" tensor<f32> @params[704 + 4] : 900 -> 900'),
     "binding 'rate': ends with the step but lies in arena 'params', which outlives it"),
    ("a state lies on a parameter", "whole", bind('plan.binding state "zz.slot" tensor<8x16xf32> {hidden.weight} -> 3 initial 7.0'),
     "shares bytes with another binding"),
    ("an entry writes over state that it does not list", "whole", put(LAST_BINDING, OVER_STATE, "eval"), "overwrites 'hidden.weight.momentum_buffer', which this entry does not list"),
    ("a metric bears the name of state", "whole",
     both(put('metric "loss"', 'metric "hidden.weight.momentum_buffer"', "eval"), put(LAST_BINDING, OVER_STATE, "eval")),
     "overwrites 'hidden.weight.momentum_buffer', which this entry does not list"),
    ("a repeat without end", "whole",
     put(LAST_BINDING, r"\1      plan.repeat 9223372036854775807 {\n        plan.fill @transient[0 + 64] : 5000 pattern 0 of 4\n      }\n", "eval"),
     "its repeats execute more than 1000000000 instructions"),
    ("kernels of a GPU in a plan for a CPU", "emulated", put('target = "cuda-emulated"', 'target = "cpu:x86-64-v3"'), "is for a GPU, the plan for 'cpu:x86-64-v3'"),
    ("kernels of a CPU in a plan for a GPU", "whole", put('target = "cpu:x86-64-v[34]"', 'target = "cuda:sm_90"'), "is for the CPU, the plan for 'cuda:sm_90'"),
    ("a target that does not exist", "whole", put('target = "cpu:x86-64-v[34]"', 'target = "tpu"'), "unknown target 'tpu'"),
    ("a format that does not exist", "whole", put("format_version = 3", "format_version = 99"), "plan format 99; this runtime reads 3"),
    ("two arenas of parameters", "whole", put("plan.arena @state state", "plan.arena @state params"), "arena 'state': is of a role of which a plan has one arena"),
    ("an extent of 0", "whole", put(r"(plan\.launch @.*extent )\d+", r"\g<1>0", "train"), "the launch has extent 0 by"),
    ("a large extent", "whole", put(r"(plan\.launch @.*extent )\d+", r"\g<1>99999999", "train"), "the launch has extent 99999999 by"),
    ("another grain", "whole", put(r"(plan\.launch @.*grain )\d+", r"\g<1>7", "train"), " by 7"),
    ("another kernel of as many operands", "whole", exchange_kernels, "over "),
    ("a part of the batch is written where no round reads it", "parts", put(r'(plan\.copy @io\[0 \+ 128\] : 1 step 128 to @transient\[\d+ \+ 128\] : \d+)', r"\1 step 128", "train"),
     "which an earlier round of the repeat made and nothing carries to this one"),
    ("a carry is dropped", "parts", put(r" carries \[@\w+\[[^]]*\][^]]*\]", "", "eval"), "reads value "),
    ("a library call that does not exist", "whole", put('plan.call "gemm"', 'plan.call "gemmm"', "train"), "no library has a call 'gemmm'; there are attention, attention_grad, conv, "),
]  # fmt: skip


def refusal(scratch, name, text):
    path = scratch / (re.sub(r"\W+", "-", name) + ".mlir")
    path.write_text(text)
    done = subprocess.run(["lowtide-opt", path, "--verify-plan", "-o", "/dev/null"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, f"{name}: exit {done.returncode}: {done.stderr[-500:]}"
    return re.search(r"error: (.*)", done.stderr)[1]


def main(scratch):
    texts = {}
    for name, flags in PLANS.items():
        path = scratch / f"{name}.mlir"
        subprocess.run(["lowtide", "compile", MODEL, *flags, "-q", "--emit=plan", "-o", path], check=True)
        subprocess.run(["lowtide-opt", path, "--verify-plan", "-o", "/dev/null"], check=True, capture_output=True)
        texts[name] = path.read_text()
    wrong = 0
    for name, plan, change, words in ALTERED:
        said = refusal(scratch, name, change(texts[plan]))
        if not words or words not in said:
            print(f"{name}: {said}")
            wrong += 1
    print(f"{len(ALTERED)} altered plans, {wrong} refused for another reason")


main(pathlib.Path(sys.argv[1]))
