//===- ScalarNodes.cpp - scalar operations as ONNX operators --------------===//
//
// One operator each where the standard has it; what it lacks is composed so that accuracy is kept.
//
//===----------------------------------------------------------------------===//

#include "ScalarNodes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowtide;

static Type elementOf(Value tensor) { return tensorType(tensor).getElementType(); }
static bool isBool(Value tensor) { return elementOf(tensor).isInteger(1); }

/// The operator of equal meaning on all types that the operation takes; empty when there is none.
static StringRef directOperator(Operation *op, bool isLogic) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return "Add"; })
      .Case<arith::SubFOp, arith::SubIOp>([](auto) { return "Sub"; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return "Mul"; })
      .Case<arith::DivFOp, arith::DivSIOp>([](auto) { return "Div"; })
      .Case<arith::MaximumFOp, arith::MaxSIOp>([](auto) { return "Max"; })
      .Case<arith::MinimumFOp, arith::MinSIOp>([](auto) { return "Min"; })
      .Case<arith::AndIOp>([&](auto) { return isLogic ? "And" : "BitwiseAnd"; })
      .Case<arith::OrIOp>([&](auto) { return isLogic ? "Or" : "BitwiseOr"; })
      .Case<arith::XOrIOp>([&](auto) { return isLogic ? "Xor" : "BitwiseXor"; })
      .Case<arith::NegFOp>([](auto) { return "Neg"; })
      .Case<arith::SelectOp>([](auto) { return "Where"; })
      .Case<math::AbsFOp, math::AbsIOp>([](auto) { return "Abs"; })
      .Case<math::ExpOp>([](auto) { return "Exp"; })
      .Case<math::LogOp>([](auto) { return "Log"; })
      .Case<math::SqrtOp>([](auto) { return "Sqrt"; })
      .Case<math::SinOp>([](auto) { return "Sin"; })
      .Case<math::CosOp>([](auto) { return "Cos"; })
      .Case<math::TanOp>([](auto) { return "Tan"; })
      .Case<math::AsinOp>([](auto) { return "Asin"; })
      .Case<math::AcosOp>([](auto) { return "Acos"; })
      .Case<math::AtanOp>([](auto) { return "Atan"; })
      .Case<math::SinhOp>([](auto) { return "Sinh"; })
      .Case<math::CoshOp>([](auto) { return "Cosh"; })
      .Case<math::TanhOp>([](auto) { return "Tanh"; })
      .Case<math::AsinhOp>([](auto) { return "Asinh"; })
      .Case<math::AcoshOp>([](auto) { return "Acosh"; })
      .Case<math::AtanhOp>([](auto) { return "Atanh"; })
      .Case<math::ErfOp>([](auto) { return "Erf"; })
      .Case<math::FloorOp>([](auto) { return "Floor"; })
      .Case<math::CeilOp>([](auto) { return "Ceil"; })
      .Case<math::RoundEvenOp>([](auto) { return "Round"; })
      .Case<math::PowFOp, math::IPowIOp>([](auto) { return "Pow"; })
      .Default(StringRef());
}

static Value writeNot(FormBuilder &form, Value x) { return form.pointwise("Not", x); }

/// Signed order of numbers whose highest bit is turned is the unsigned order of the numbers.
static Value turnHighestBit(FormBuilder &form, Value x) {
  Type type = elementOf(x);
  int64_t highest = static_cast<int64_t>(uint64_t(1) << (type.getIntOrFloatBitWidth() - 1));
  return form.pointwise("BitwiseXor", {x, form.scalarInt(type, highest)});
}

static Value writeCompare(FormBuilder &form, Compare predicate, Value x, Value y) {
  Type i1 = form.builder.getI1Type();
  switch (predicate) {
  case Compare::EQ:
    return form.pointwise("Equal", {x, y}, i1);
  case Compare::NE:
    return writeNot(form, form.pointwise("Equal", {x, y}, i1));
  case Compare::LT:
    return form.pointwise("Less", {x, y}, i1);
  case Compare::LE:
    return form.pointwise("LessOrEqual", {x, y}, i1);
  case Compare::GT:
    return form.pointwise("Greater", {x, y}, i1);
  case Compare::GE:
    return form.pointwise("GreaterOrEqual", {x, y}, i1);
  }
  return {};
}

static Value writeFloatCompare(FormBuilder &form, arith::CmpFOp op, Value x, Value y) {
  using P = arith::CmpFPredicate;
  switch (op.getPredicate()) {
  case P::OEQ:
    return writeCompare(form, Compare::EQ, x, y);
  case P::UNE:
    return writeCompare(form, Compare::NE, x, y);
  case P::OLT:
    return writeCompare(form, Compare::LT, x, y);
  case P::OLE:
    return writeCompare(form, Compare::LE, x, y);
  case P::OGT:
    return writeCompare(form, Compare::GT, x, y);
  case P::OGE:
    return writeCompare(form, Compare::GE, x, y);
  default:
    return {};
  }
}

static Value writeIntCompare(FormBuilder &form, arith::CmpIOp op, Value x, Value y) {
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  bool isUnsigned = llvm::is_contained({P::ult, P::ule, P::ugt, P::uge}, predicate);
  if (isUnsigned && isBool(x)) { // Order of false and true.
    x = form.cast(x, form.builder.getI32Type());
    y = form.cast(y, form.builder.getI32Type());
  } else if (isUnsigned) {
    x = turnHighestBit(form, x);
    y = turnHighestBit(form, y);
  }
  switch (predicate) {
  case P::eq:
    return writeCompare(form, Compare::EQ, x, y);
  case P::ne:
    return writeCompare(form, Compare::NE, x, y);
  case P::slt:
  case P::ult:
    return writeCompare(form, Compare::LT, x, y);
  case P::sle:
  case P::ule:
    return writeCompare(form, Compare::LE, x, y);
  case P::sgt:
  case P::ugt:
    return writeCompare(form, Compare::GT, x, y);
  case P::sge:
  case P::uge:
    return writeCompare(form, Compare::GE, x, y);
  }
  return {};
}

/// Widens the bits of `x` with zeros.
static Value zeroExtend(FormBuilder &form, Value x, Type to) {
  if (isBool(x))
    return form.cast(x, to);
  unsigned width = elementOf(x).getIntOrFloatBitWidth();
  Value wide = form.cast(x, to);
  return form.pointwise("BitwiseAnd", {wide, form.scalarInt(to, static_cast<int64_t>((uint64_t(1) << width) - 1))});
}

/// Signless bits under an unsigned type: what shifts and divides as unsigned numbers do.
static Value asUnsigned(FormBuilder &form, Value x) {
  return form.cast(x, form.builder.getIntegerType(elementOf(x).getIntOrFloatBitWidth(), /*isSigned=*/false));
}

static Value writeUnsigned(FormBuilder &form, StringRef name, ArrayRef<Value> operands,
                           ArrayRef<NamedAttribute> attributes = {}) {
  Value x = asUnsigned(form, operands[0]), y = asUnsigned(form, operands[1]);
  return form.cast(form.pointwise(name, {x, y}, {}, attributes), elementOf(operands[0]));
}

// eˣ − 1 = tanh(x/2) · (eˣ + 1): nothing cancels. Beyond the range of tanh's precision both sides agree.
static Value writeExpm1(FormBuilder &form, Value x) {
  Type type = elementOf(x);
  Value half = form.pointwise("Tanh", form.pointwise("Mul", {x, form.scalar(type, 0.5)}));
  Value sum = form.pointwise("Add", {form.pointwise("Exp", x), form.scalar(type, 1.0)});
  return form.pointwise("Mul", {half, sum});
}

// log(1 + x) = 2 · atanh(x / (x + 2)) near 0, where 1 + x would round x away.
static Value writeLog1p(FormBuilder &form, Value x) {
  Type type = elementOf(x);
  Value ratio = form.pointwise("Div", {x, form.pointwise("Add", {x, form.scalar(type, 2.0)})});
  Value near = form.pointwise("Mul", {form.pointwise("Atanh", ratio), form.scalar(type, 2.0)});
  Value far = form.pointwise("Log", form.pointwise("Add", {x, form.scalar(type, 1.0)}));
  Value isNear = form.pointwise("Less", {form.pointwise("Abs", x), form.scalar(type, 0.5)}, form.builder.getI1Type());
  return form.pointwise("Where", {isNear, near, far});
}

Value lowtide::writeScalarOp(FormBuilder &form, Operation *op, ArrayRef<Value> operands) {
  bool isLogic = !operands.empty() && isBool(operands[0]);
  if (StringRef name = directOperator(op, isLogic); !name.empty())
    return form.pointwise(name, operands);
  Type resultType = op->getResult(0).getType();
  if (isa<IndexType>(resultType))
    resultType = form.builder.getI64Type();
  NamedAttribute fmod = form.attr("fmod", 1);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::ConstantOp constant) {
        if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
          return form.scalar(resultType, real.getValueAsDouble());
        return form.scalarInt(resultType, cast<IntegerAttr>(constant.getValue()).getValue().getSExtValue());
      })
      .Case([&](arith::CmpFOp compare) { return writeFloatCompare(form, compare, operands[0], operands[1]); })
      .Case([&](arith::CmpIOp compare) { return writeIntCompare(form, compare, operands[0], operands[1]); })
      .Case<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::FPToSIOp, arith::ExtSIOp, arith::TruncIOp,
            arith::IndexCastOp>([&](auto) { return form.cast(operands[0], resultType); })
      .Case([&](arith::BitcastOp) {
        return form.pointwise("BitCast", operands, resultType, form.attr("to", getOnnxDataType(resultType)));
      })
      .Case([&](arith::ExtUIOp) { return zeroExtend(form, operands[0], resultType); })
      .Case([&](arith::UIToFPOp) {
        if (isLogic)
          return form.cast(operands[0], resultType);
        if (elementOf(operands[0]).getIntOrFloatBitWidth() < 64)
          return form.cast(zeroExtend(form, operands[0], form.builder.getI64Type()), resultType);
        return form.cast(asUnsigned(form, operands[0]), resultType);
      })
      .Case([&](arith::FPToUIOp) {
        Type unsignedType = form.builder.getIntegerType(resultType.getIntOrFloatBitWidth(), /*isSigned=*/false);
        return form.cast(form.cast(operands[0], unsignedType), resultType);
      })
      .Case<arith::RemFOp, arith::RemSIOp>([&](auto) { return form.pointwise("Mod", operands, {}, fmod); })
      .Case([&](arith::DivUIOp) { return writeUnsigned(form, "Div", operands); })
      .Case([&](arith::RemUIOp) { return writeUnsigned(form, "Mod", operands); })
      .Case([&](arith::ShRUIOp) { return writeUnsigned(form, "BitShift", operands, form.attr("direction", "RIGHT")); })
      .Case([&](arith::ShLIOp) { return writeUnsigned(form, "BitShift", operands, form.attr("direction", "LEFT")); })
      .Case<arith::MaxUIOp, arith::MinUIOp>([&](auto) -> Value {
        bool isMax = isa<arith::MaxUIOp>(op);
        if (isLogic)
          return form.pointwise(isMax ? "Or" : "And", operands);
        return writeUnsigned(form, isMax ? "Max" : "Min", operands);
      })
      .Case([&](math::IsNaNOp) { return form.pointwise("IsNaN", operands, form.builder.getI1Type()); })
      .Case([&](math::IsInfOp) { return form.pointwise("IsInf", operands, form.builder.getI1Type()); })
      .Case([&](math::ExpM1Op) { return writeExpm1(form, operands[0]); })
      .Case([&](math::Log1pOp) { return writeLog1p(form, operands[0]); })
      .Default(Value());
}
