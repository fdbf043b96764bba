//===- HelpPages.cpp - short help, a page a command -------------*- C++ -*-===//
//
// Forty lines at most; --help-all lists every flag.
//
//===----------------------------------------------------------------------===//

#include "Flags.h"

static const char *const programHelp = R"help(lowtide: compiles one training step of an ONNX model into a .tide artifact

  lowtide compile gpt.onnx -o gpt.tide --dim batch=8 --optimizer=adamw --lr=3e-4
  lowtide check gpt.onnx                      what is in the file, what is missing
  lowtide fit gpt.onnx --dim batch=8          what the step costs at which budget
  lowtide compile gpt.onnx --emit=nn -o -     stop at a stage and print it
  lowtide report gpt.tide -o gpt.html         waterline and address map
  lowtide explain gpt.tide 'h.0.*'            why a tensor is kept, recomputed, where it lies
  lowtide diff old.tide new.tide              what changed (--ir: two texts of a stage)
  lowtide verify gpt.onnx --against=gpt.py:make   does it train as the module does
  lowtide verify gpt.tide                     prove the plan again
  lowtide doctor                              this machine, for a bug report

model      --dim NAME=V  --shape INPUT=8x64  --batch=N  --mode=train|eval|as-is
           --dropout=P  --loss="cross_entropy(logits, labels) + 0.3*mse(a, b)"
           --outputs=NAME|all  --set INPUT=VALUE  --freeze-norm=GLOB
parameters --params=GLOB  --frozen=GLOB  --lora='*.q_proj:r=16,alpha=32'
           --rename=FILE_NAME=NAME
optimizer  --optimizer=sgd|adamw|rmsprop|lion|adafactor|muon|…  --lr=  --betas=
           --weight-decay=  --momentum=  --nesterov  --group=GLOB:weight_decay=0
           --sparse-updates=exact|lazy|off
           --moments=f32|bf16|int8|fp8  --master=f32|split|whole|sr  --ema=0.999
gradients  --clip-norm=  --clip-value=  --loss-scale=none|65536|dynamic
schedule   --schedule=constant|linear|cosine|one-cycle|wsd|…  --warmup-steps=
precision  --precision=f32|mixed-bf16|mixed-f16|bf16|f16|f64
           --precision-override='*.ln*=f32'  --frozen-weights=auto|bf16|int8|nf4|fp8
target     --target=cpu|cuda|cuda-emulated|reference  --entries=train,eval
memory     --device-budget=8MiB|1.5GiB|50%  --host-budget=32GiB  --disk-budget=100GiB
           --micro-batches=K  --micro-batch-blocks=auto|off|N
           --loss-head-chunks=auto|off|N  --updates=now|deferred
stages     --emit=onnx|nn|train|fitted|plan|kernels|ptx|artifact|onnx-model
           --from=onnx|nn|train|fitted  --onnx-stage=nn|train|fitted
other      -o FILE  --config=FILE.json  --print-config  -v  -q  --log=plan=debug
           --help-all: every flag of a command, explained (lowtide compile --help-all)

exit codes: 0 ok, 1 usage, 2 bad input file, 3 unsupported, 4 does not fit the
budget, 5 verification failed, 6 device, 7 non-finite loss, 8 I/O, 9 numbers
leave the recorded run, 70 internal
)help";

static const char *const compileHelp = R"help(lowtide compile: from a model to one training step as a .tide artifact

  lowtide compile gpt.onnx -o gpt.tide --dim batch=8 --optimizer=adamw --lr=3e-4
  lowtide compile net.onnx -o net.tide --batch=32 --loss="cross_entropy(logits, labels)"
  lowtide compile gpt.onnx -o gpt.tide --batch=8 --device-budget=60%
  lowtide compile gpt.onnx -o gpt.tide --batch=8 --lora='*.q_proj,*.v_proj:r=16'
  lowtide compile gpt.onnx --batch=8 --emit=train -o -

model      --dim NAME=V[,NAME=V]  --shape INPUT=8x64  --batch=N  --dropout=P
           --loss="LOSS + 0.3*LOSS"  LOSS: cross_entropy, nll, nll_loss, mse, l1,
           smooth_l1, huber, bce, bce_with_logits, kl_div of (OUTPUT, TARGET),
           with PyTorch's options: (logits, labels, label_smoothing=0.1)
           --outputs=NAME|all: of the file, computed by training steps too
           --set INPUT=VALUE: the input is a constant
parameters --params=GLOB: only these  --frozen=GLOB: not these (in their order;
           the last that matches counts)  --rename=FILE_NAME=NAME
           --lora='*.q_proj,*.v_proj:r=16,alpha=32,dropout=0.05': low-rank pairs
optimizer  --optimizer=sgd|momentum|adagrad|adam|adamw|rmsprop|nadam|radam|adamax|
           adadelta|asgd|rprop|lion|lamb|adafactor|muon  --lr=  --betas=0.9,0.999
           --amsgrad  --maximize  --fallback=adamw:lr=3e-4 (muon)
           --eps=  --weight-decay=  --momentum=  --nesterov
           --group='bias,*norm*:weight_decay=0'  --sparse-updates=lazy|off
           --moments=bf16|int8|fp8  --master=split|sr  --ema=0.999
gradients  --clip-norm=  --clip-value=  --loss-scale=none|65536|dynamic
schedule   --schedule=constant|linear|cosine|polynomial|step|multistep|exponential|
           inverse-sqrt|one-cycle|cosine-restarts|wsd  --warmup-steps=  --total-steps=
precision  --precision=f32|mixed-bf16|mixed-f16|bf16|f16|f64
           --precision-override='*.ln*=f32'  --frozen-weights=auto|bf16|int8|nf4|fp8
memory     --device-budget=8MiB|1.5GiB|50%  --micro-batches=K
target     --target=cpu|cuda:sm_90|cuda-emulated|reference  --entries=train,eval
stages     --emit=onnx|nn|train|fitted|plan|kernels|ptx|artifact|onnx-model
other      -o FILE  --config=FILE.json  --print-config  -v  -q
           --help-all: every flag, explained
)help";

static const char *const checkHelp = R"help(lowtide check: what is in a model, what is missing, what stands in the way

  lowtide check gpt.onnx
  lowtide check gpt.onnx --dim batch=8        with its arithmetic
  lowtide check net.onnx --loss="cross_entropy(logits, labels)"

Prints inputs and outputs, who is a parameter and why, operators that cannot be
compiled, and a command line to go on with. Compiles nothing. Flags are those of
lowtide compile; --json prints the same facts as JSON; --help-all lists all.

exit codes: 0 nothing stands in the way, 1 usage, 2 bad file, 3 unsupported
)help";

static const char *const fitHelp = R"help(lowtide fit: what a step costs at which budget; needs no weights and no device

  lowtide fit gpt.onnx --dim batch=8                        a table of budgets
  lowtide fit gpt.onnx --dim batch=8 --device-budget=24GiB  yes or no, and how
  lowtide fit gpt.onnx --dim batch=8 --card=rtx4090         on a known card
  lowtide fit --card=list                                   the cards
  lowtide fit gpt.onnx --batch=8 --disk-budget=0,1GiB,8GiB  a table over both

Without a budget: the smallest and the largest peak, and a line for each budget
between (--rows=N), with what it costs in time. --baselines puts published
methods next to it, --bound what no plan can go below. --host-budget and
--disk-budget add plans with another memory, as a list a column for each of its
budgets (0: without it). With a budget of the device or a card:
whether the step fits, the cheapest change that makes it fit (recomputation,
micro-batches, precision, a smaller batch), and the largest batch that does. The
other flags are those of lowtide compile; --json prints JSON; --help-all lists all.

exit codes: 0 it fits, 4 it does not, 1 usage, 2 bad file, 3 unsupported
)help";

static const char *const verifyHelp = R"help(lowtide verify: does a model's training step compute what PyTorch computes

  lowtide verify net.onnx --against=net.py:make --optimizer=adamw --lr=1e-3
  lowtide verify net.onnx --against=net.py:make --loss="cross_entropy(logits, y)"
  lowtide verify net.onnx --against=record.npz      a record made elsewhere
  lowtide verify net.onnx --against=onnxruntime --data=data.npz   every node
  lowtide verify step.tide                          prove an artifact's plan again

net.py holds a function that returns module, loss and batch: a torch.nn.Module;
None where it returns its loss, else a function of (output, *targets); arrays of
one batch by the names of the file's inputs, or a tuple in their order. It runs
in your Python (--python=PATH), which needs torch and numpy. --record=FILE.npz
keeps what it computed; docs/verify.md says what is in it.

Compares, in f64 and without dropout: the gradient of every parameter, buffers
after one step, and the losses of ten (--proof-steps) on the same batch, within
--tolerance=1e-5 of the largest entry. Prints them, the first module whose output
differs, and what to type. The batch binds dimensions; the other flags are those
of lowtide compile; --json prints JSON; --help-all lists all.

exit codes: 0 everything agrees, 9 something differs, 1 usage, 2 bad file,
3 unsupported, 5 an artifact's plan is not proved, 8 I/O
)help";

const char *lowtide::driver::findHelpPage(const std::string &command) {
  return command.empty()        ? programHelp
         : command == "compile" ? compileHelp
         : command == "check"   ? checkHelp
         : command == "fit"     ? fitHelp
         : command == "verify"  ? verifyHelp
                                : nullptr;
}
