// What a step does to its gradients between the backward pass and the updates: unscale, check, clip, commit; and to the
// average of its weights after them.
#ifndef LOWTIDE_TRAIN_LOSSSCALING
#define LOWTIDE_TRAIN_LOSSSCALING

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "lowtide/Interfaces/OpInterfaces.td"
include "lowtide/Dialect/Train/OptimizerInterface.td"
include "lowtide/Dialect/Train/TrainAttrs.td"

// An op on all gradients of a step, or on the few numbers that decide about them. Its decomposition is its definition.
class Train_GradientOp<string mnemonic, list<Trait> traits = []>
    : Op<Train_Dialect, mnemonic, !listconcat(traits, [Pure, DeclareOpInterfaceMethods<FactsInterface>,
        DeclareOpInterfaceMethods<DecomposableInterface>])> {
  // Floating-point operations per element of the first operand group.
  int flopsPerElement = 1;
  let hasVerifier = 1;
  let extraClassDefinition = [{
    const ::lowtide::OpFacts &$cppClass::getFacts() {
      static const ::lowtide::OpFacts facts{::lowtide::OpFamily::Optimizer, ::lowtide::PrecisionPolicy::High,
          ::lowtide::Aliasing::InPlace, ::lowtide::BatchRule::Unknown, }] # flopsPerElement # [{, ""};
      return facts;
    }
    uint64_t $cppClass::getFlops() {
      return ::lowtide::train::countGradientFlops(getOperation(), }] # flopsPerElement # [{);
    }
  }];
}

def Train_UnscaleOp : Train_GradientOp<"unscale", [DeclareOpInterfaceMethods<GradientsInterface>]> {
  let summary = "gradients divided by the loss scale, and whether every one of their elements was finite";
  let description = [{
    As torch.amp's GradScaler: each gradient is multiplied by float(1 / double(scale)); `finite` is false when any element
    of any gradient was infinite or NaN before that. One pass over the gradients, together with `train.global_norm`.
  }];
  let flopsPerElement = 2;
  let arguments = (ins Variadic<AnyTensor>:$grads, AnyTensor:$scale);
  let results = (outs Variadic<AnyTensor>:$unscaled, AnyTensor:$finite);
  let assemblyFormat = "$grads `by` $scale attr-dict `:` functional-type(operands, results)";
}

def Train_GlobalNormOp : Train_GradientOp<"global_norm"> {
  let summary = "Euclidean norm of all gradients together";
  let flopsPerElement = 2;
  let arguments = (ins Variadic<AnyTensor>:$grads);
  let results = (outs AnyTensor:$norm);
  let assemblyFormat = "$grads attr-dict `:` functional-type(operands, results)";
}

def Train_ClipNormOp : Train_GradientOp<"clip_norm", [DeclareOpInterfaceMethods<GradientsInterface>]> {
  let summary = "gradients times min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_";
  let arguments = (ins Variadic<AnyTensor>:$grads, AnyTensor:$norm, F64Attr:$max_norm);
  let results = (outs Variadic<AnyTensor>:$clipped);
  let assemblyFormat = "$grads `norm` $norm attr-dict `:` functional-type(operands, results)";
}

def Train_ClipValueOp : Train_GradientOp<"clip_value", [DeclareOpInterfaceMethods<GradientsInterface>]> {
  let summary = "gradients limited to [-limit, limit], element by element, as torch.nn.utils.clip_grad_value_";
  let arguments = (ins Variadic<AnyTensor>:$grads, F64Attr:$limit);
  let results = (outs Variadic<AnyTensor>:$clipped);
  let assemblyFormat = "$grads attr-dict `:` functional-type(operands, results)";
}

def Train_UpdateScaleOp : Train_GradientOp<"update_scale"> {
  let summary = "the next step's loss scale, growth tracker and count of skipped steps";
  let description = [{
    As torch.amp's GradScaler.update: a step that was not finite multiplies the scale by `backoff` and clears the tracker;
    after `interval` finite steps in a row the scale is multiplied by `growth`, unless that overflows. Products are taken
    in f64 and rounded to f32.
  }];
  let arguments = (ins AnyTensor:$scale, AnyTensor:$tracker, AnyTensor:$skipped, AnyTensor:$finite, F64Attr:$growth,
                       F64Attr:$backoff, I64Attr:$interval);
  let results = (outs AnyTensor:$new_scale, AnyTensor:$new_tracker, AnyTensor:$new_skipped);
  let assemblyFormat = [{
    $scale `tracker` $tracker `skipped` $skipped `finite` $finite attr-dict `:` functional-type(operands, results)
  }];
}

def Train_CommitOp : Train_GradientOp<"commit"> {
  let summary = "the new value where the step is finite, else the old one: an update that a bad step does not make";
  let arguments = (ins AnyTensor:$finite, AnyTensor:$updated, AnyTensor:$old);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$updated `or` $old `if` $finite attr-dict `:` functional-type(operands, results)";
}

def Train_MovingAverageOp : Train_GradientOp<"moving_average"> {
  let summary = "the average of a weight moved by 1 - decay of its distance from the weight's new value";
  let description = [{
    As torch.lerp(average, now, 1 - decay): of its two forms the one that starts at the nearer end. Before the first update
    (`updates` is 0) the new value itself: PyTorch's AveragedModel with get_ema_multi_avg_fn(decay).
  }];
  let flopsPerElement = 4;
  let arguments = (ins TensorOf<[AnyFloat]>:$average, TensorOf<[AnyFloat]>:$now, TensorOf<[AnySignlessInteger]>:$updates,
    F64Attr:$decay);
  let results = (outs TensorOf<[AnyFloat]>:$result);
  let assemblyFormat = "$average `to` $now `updates` $updates attr-dict `:` functional-type(operands, results)";
}

#endif
