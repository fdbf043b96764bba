//===- SharedBodiesTest.cpp - kernels that differ in counts -----*- C++ -*-===//
//
// Which constants become arguments, and which keep kernels apart.
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/SharedBodies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"

using namespace mlir;
using namespace lowtide;
using namespace lowtide::codegen;
using testing::ElementsAre;

namespace {

/// Numbers of a kernel that visits rows of `columns` elements.
struct Numbers {
  int64_t stride = 832, columns = 196, step = 1, factor = 1, divisor = 3, start = 5;
};

class SharedBodies : public testing::Test {
protected:
  SharedBodies() { context.loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, scf::SCFDialect>(); }

  func::FuncOp parse(const Numbers &numbers) {
    std::string text;
    llvm::raw_string_ostream(text) << R"(
      func.func @kernel(%args: !llvm.ptr) { return }
      func.func private @kernel.0(%x: !llvm.ptr, %begin: index, %end: index) {
        %one = arith.constant 1 : index
        %zero = arith.constant 0 : index
        %columns = arith.constant )"
                                   << numbers.columns << R"( : index
        %step = arith.constant )" << numbers.step
                                   << R"( : index
        scf.for %row = %begin to %end step %one {
          %start = arith.constant )"
                                   << numbers.start << R"( : index
          %moved = arith.subi %row, %start : index
          %divisor = arith.constant )"
                                   << numbers.divisor << R"( : index
          %part = arith.divui %moved, %divisor : index
          scf.for %i = %zero to %columns step %step {
            %stride = arith.constant )"
                                   << numbers.stride << R"( : index
            %first = arith.muli %part, %stride : index
            %again = arith.constant )"
                                   << numbers.stride << R"( : index
            %second = arith.muli %first, %again : index
            %factor = arith.constant )"
                                   << numbers.factor << R"( : index
            %far = arith.muli %i, %factor : index
            %at = arith.addi %second, %far : index
            %wide = arith.index_cast %at : index to i64
            %p = llvm.getelementptr %x[%wide] : (!llvm.ptr, i64) -> !llvm.ptr, f32
            %v = llvm.load %p : !llvm.ptr -> f32
            llvm.store %v, %p : f32, !llvm.ptr
          }
        }
        return
      })";
    modules.push_back(parseSourceString<ModuleOp>(text, &context));
    return modules.back()->lookupSymbol<func::FuncOp>("kernel.0");
  }
  std::unique_ptr<KernelForm> form(const Numbers &numbers) {
    func::FuncOp body = parse(numbers);
    return std::make_unique<KernelForm>(*modules.back(), body);
  }
  static std::string print(Operation *op) {
    std::string text;
    llvm::raw_string_ostream(text) << *op;
    return text;
  }

  MLIRContext context;
  std::vector<OwningOpRef<ModuleOp>> modules;
};

TEST_F(SharedBodies, CountsBecomeArguments) {
  func::FuncOp body = parse({});
  KernelForm first(*modules.back(), body);
  auto second = form({.stride = 800, .start = 6}), third = form({.stride = 768});
  EXPECT_EQ(first.getText(), second->getText());
  EXPECT_EQ(first.getText(), third->getText());
  // One argument for each count that differs, however often the body names it; the rest stay constants.
  auto further = shareBody(body, {&first, second.get(), third.get()});
  EXPECT_THAT(further, ElementsAre(ElementsAre(5, 832), ElementsAre(6, 800), ElementsAre(5, 768)));
  EXPECT_EQ(body.getNumArguments(), 5u);
  EXPECT_EQ(llvm::range_size(body.getArgument(4).getUses()), 2);
  EXPECT_EQ(print(body).find("832"), std::string::npos);
  EXPECT_NE(print(body).find("196"), std::string::npos);
}

TEST_F(SharedBodies, FormLeavesTheKernel) {
  func::FuncOp body = parse({});
  const std::string before = print(*modules.back());
  KernelForm taken(*modules.back(), body);
  EXPECT_EQ(print(*modules.back()), before);
}

TEST_F(SharedBodies, LoopsAndDivisorsKeepApart) {
  const std::string own = form({})->getText();
  EXPECT_NE(form({.columns = 195})->getText(), own);
  EXPECT_NE(form({.step = 2})->getText(), own);
  EXPECT_NE(form({.divisor = 4})->getText(), own);
  // The distance of one round's access from the next one's.
  EXPECT_NE(form({.factor = 2})->getText(), own);
}

} // namespace
