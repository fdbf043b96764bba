//===- Libdevice.cpp - NVIDIA's library of functions ------------*- C++ -*-===//
//
// f32 functions are polynomials on every target (MathExpansion.cpp). What is left, among it every function of f64, is
// the math library on the CPU and libdevice on a GPU; those may differ in the last place.
//
//===----------------------------------------------------------------------===//

#include "PtxCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace mlir;
using namespace lowtide;

/// The function's name for f64; f32 has an `f` after. Empty: the op has instructions of its own.
static StringRef getFunctionName(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Case("arith.remf", "fmod")
      .Case("math.acos", "acos")
      .Case("math.acosh", "acosh")
      .Case("math.asin", "asin")
      .Case("math.asinh", "asinh")
      .Case("math.atan", "atan")
      .Case("math.atan2", "atan2")
      .Case("math.atanh", "atanh")
      .Case("math.cbrt", "cbrt")
      .Case("math.cos", "cos")
      .Case("math.cosh", "cosh")
      .Case("math.erf", "erf")
      .Case("math.erfc", "erfc")
      .Case("math.exp", "exp")
      .Case("math.exp2", "exp2")
      .Case("math.expm1", "expm1")
      .Case("math.log", "log")
      .Case("math.log10", "log10")
      .Case("math.log1p", "log1p")
      .Case("math.log2", "log2")
      .Case("math.powf", "pow")
      .Case("math.sin", "sin")
      .Case("math.sinh", "sinh")
      .Case("math.tan", "tan")
      .Case("math.tanh", "tanh")
      .Default("");
}

void codegen::callLibdevice(ModuleOp module) {
  OpBuilder builder(module.getContext());
  SmallVector<Operation *> calls;
  module.walk([&](Operation *op) {
    if (!getFunctionName(op).empty() && (op->getResult(0).getType().isF32() || op->getResult(0).getType().isF64()))
      calls.push_back(op);
  });
  for (Operation *op : calls) {
    Type type = op->getResult(0).getType();
    std::string name = ("__nv_" + getFunctionName(op) + (type.isF32() ? "f" : "")).str();
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function) {
      builder.setInsertionPointToStart(module.getBody());
      function = func::FuncOp::create(builder, op->getLoc(), name,
                                      builder.getFunctionType(op->getOperandTypes(), op->getResultTypes()));
      function.setPrivate();
    }
    builder.setInsertionPoint(op);
    auto call = func::CallOp::create(builder, op->getLoc(), function, op->getOperands());
    op->replaceAllUsesWith(call);
    op->erase();
  }
}

LogicalResult codegen::linkLibdevice(Operation *errors, llvm::Module &module) {
  llvm::Function *needed = nullptr;
  for (llvm::Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("__nv_"))
      needed = &function;
  if (!needed)
    return success();
  auto path = findInToolkit("nvvm/libdevice/libdevice.10.bc");
  if (!path)
    return errors->emitError("cannot generate PTX: a kernel needs ")
           << needed->getName() << " of libdevice, which is in no CUDA toolkit here; tools/dev setup brings it, or "
           << "set CUDA_HOME";
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> library = llvm::parseIRFile(*path, error, module.getContext());
  if (!library)
    return errors->emitError("cannot read ") << *path << ": " << error.getMessage();
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  bool wrong = llvm::Linker::linkModules(module, std::move(library), llvm::Linker::LinkOnlyNeeded,
                                         [](llvm::Module &whole, const llvm::StringSet<> &names) {
                                           llvm::internalizeModule(whole, [&](const llvm::GlobalValue &value) {
                                             return !value.hasName() || !names.contains(value.getName());
                                           });
                                         });
  if (wrong)
    return errors->emitError("cannot link ") << *path;
  return success();
}
