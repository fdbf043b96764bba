"""A recurrence as files have it, step after step: written_out.py <steps> [--backward] [--apart] [--draws] [--listed] [--doubled] [--unlike=STEP].

Samples are 2, features 3, and the state has 4: h = tanh(x_t w + h u). The states of all steps are put one after another. `--backward`: from
the last slice to the first; `--apart`: slices along the second dimension, where exporters have batches first; `--draws`: each step
drops half of its state; `--listed`: each step adds a number of its own; `--doubled`: each step reads twice its slice; `--unlike`: one step
reads another matrix.
"""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("steps", type=int)
parser.add_argument("--backward", action="store_true")
parser.add_argument("--apart", action="store_true")
parser.add_argument("--draws", action="store_true")
parser.add_argument("--listed", action="store_true")
parser.add_argument("--doubled", action="store_true")
parser.add_argument("--unlike", type=int, default=-1)
options = parser.parse_args()
T, dim = options.steps, 1 if options.apart else 0

whole, part = (f"2x{T}x3", "2x1x3") if options.apart else (f"{T}x2x3", "1x2x3")
all_rows, row = (f"2x{T}x4", "2x1x4") if options.apart else (f"{T}x2x4", "1x2x4")
print(f"func.func @forward(%x: tensor<{whole}xf32>, %h: tensor<2x4xf32>, %w: tensor<3x4xf32>, %u: tensor<4x4xf32>, %v: tensor<4x4xf32>, %seed: tensor<i64>) -> tensor<{all_rows}xf32> {{")
if options.draws:
    print("""  %half = nn.constant dense<5.0e-01> : tensor<2x4xf32>
  %zero = nn.constant dense<0.0> : tensor<2x4xf32>""")
state = "%h"
for k in range(T):
    start = [0, 0, 0]
    start[dim] = T - 1 - k if options.backward else k
    print(f"""  %s{k} = nn.slice %x starts = {start} strides = [1, 1, 1] : tensor<{whole}xf32> -> tensor<{part}xf32>
  %x{k} = nn.reshape %s{k} : tensor<{part}xf32> -> tensor<2x3xf32>
  {f"%e{k} = nn.add %x{k}, %x{k} : tensor<2x3xf32>" if options.doubled else ""}
  %p{k} = nn.dot {f"%e{k}" if options.doubled else f"%x{k}"}, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %q{k} = nn.dot {state}, {"%v" if k == options.unlike else "%u"} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>""")
    if options.listed:
        print(f"""  %c{k} = nn.constant dense<{k}.0> : tensor<2x4xf32>
  %n{k} = nn.add %q{k}, %c{k} : tensor<2x4xf32>""")
    print(f"""\
  %a{k} = nn.add %p{k}, %{"n" if options.listed else "q"}{k} : tensor<2x4xf32>
  {f"%t{k}" if options.draws else f"%h{k}"} = nn.tanh %a{k} : tensor<2x4xf32>""")
    if options.draws:
        print(f"""  %d{k} = nn.random_uniform %seed, %seed, %seed op = {k} batch_dim = 0 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x4xf32>
  %m{k} = nn.compare ge %d{k}, %half : tensor<2x4xf32> -> tensor<2x4xi1>
  %h{k} = nn.select %m{k}, %t{k}, %zero : tensor<2x4xi1>, tensor<2x4xf32>""")
    print(f"""  %r{k} = nn.reshape %h{k} : tensor<2x4xf32> -> tensor<{row}xf32>""")
    state = f"%h{k}"
rows = [f"%r{k}" for k in (reversed(range(T)) if options.backward else range(T))]
print(f"""  %y = nn.concat {", ".join(rows)} dim = {dim} : ({", ".join([f"tensor<{row}xf32>"] * T)}) -> tensor<{all_rows}xf32>
  return %y : tensor<{all_rows}xf32>
}}""")
