// The attribute that says what a module is compiled for.
#ifndef LOWTIDE_TRAIN_TARGET_ATTRS
#define LOWTIDE_TRAIN_TARGET_ATTRS

include "lowtide/Dialect/Train/TrainDialect.td"

def Train_TargetAttr : AttrDef<Train_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "what a step is compiled for";
  let description = [{
    The attribute `train.target` of a module. Whatever a pass decides by the machine, it decides by these figures, and the
    text of every stage says for which ones it was made. The table of those that have a name is lib/Interfaces/Targets.inc;
    `train-set-target` puts one of them on a module, the driver's `--target` and `--target-file` do, too. A module without
    it is for `cpu:x86-64-v3`.

    `kind` is cpu, cuda, cuda-emulated or reference; `chip` the instruction set. `estimates` are what the planner counts
    with: operations per second of library calls and of generated kernels, bytes per second of memory, seconds to start an
    instruction. What the vendor states stands next to it: `rates` in operations per second by type, `memory` spaces with
    their bytes, the bytes that driver and libraries take of them, and bytes per second, `links` between them, each in one
    direction. `processors` are the multiprocessors of a GPU, `vector_bits` the length of a CPU's vectors, `threads_max` the
    threads that scratch is planned for.

    ```mlir
    module attributes {train.target = #train.target<name = "cuda:mine", kind = cuda, chip = "sm_90", processors = 132,
        estimates = {kernel_flops = 3.0e13, launch_seconds = 3.0e-6, library_flops = 3.0e14,
                     memory_bytes_per_second = 3.0e12},
        memory = [ {name = "device", bytes = 85520809984, bytes_per_second = 3.35e12} ],
        links = [ {from = "host", to = "device", bytes_per_second = 6.4e10} ],
        libraries = ["cublaslt", "cudnn"]>} {}
    ```
  }];
  let parameters = (ins
    "::mlir::StringAttr":$name, "::lowtide::TargetKind":$kind, OptionalParameter<"::mlir::StringAttr">:$chip,
    OptionalParameter<"::mlir::StringAttr">:$title, DefaultValuedParameter<"uint32_t", "0">:$processors,
    DefaultValuedParameter<"uint32_t", "0">:$vector_bits, DefaultValuedParameter<"uint32_t", "64">:$threads_max,
    "::mlir::DictionaryAttr":$estimates, OptionalParameter<"::mlir::DictionaryAttr">:$rates,
    OptionalParameter<"::mlir::ArrayAttr">:$memory, OptionalParameter<"::mlir::ArrayAttr">:$links,
    OptionalParameter<"::mlir::ArrayAttr">:$libraries);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif
