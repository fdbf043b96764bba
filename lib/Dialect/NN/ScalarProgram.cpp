//===- ScalarProgram.cpp - recorded scalar code, executed -------*- C++ -*-===//
//
// Each value has a register; constants are in theirs from the start. Arithmetic of f32 and narrower types is done in
// f64 and rounded once, which gives the type's own result; functions of the mathematical library are those of f32, as
// in MLIR's folders.
//
//===----------------------------------------------------------------------===//

#include "ScalarProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace lowtide;
using namespace lowtide::nn;

//===-- numbers -----------------------------------------------------------===//

namespace {
enum FloatKind : uint8_t { F64, F32, F16, BF16 };

FloatKind kindOf(Type type) { return type.isF64() ? F64 : type.isF32() ? F32 : type.isF16() ? F16 : BF16; }
bool isKnown(Type type) {
  return type.isF64() || type.isF32() || type.isF16() || type.isBF16() || isa<IndexType>(type) ||
         (isa<IntegerType>(type) && type.getIntOrFloatBitWidth() <= 64);
}
unsigned widthOf(Type type) { return isa<IndexType>(type) ? 64 : type.getIntOrFloatBitWidth(); }

double roundTo(uint8_t kind, double value) {
  if (kind == F64)
    return value;
  if (kind == F32)
    return static_cast<float>(value);
  APFloat narrow(value);
  bool lost;
  narrow.convert(kind == F16 ? APFloat::IEEEhalf() : APFloat::BFloat(), APFloat::rmNearestTiesToEven, &lost);
  narrow.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return narrow.convertToDouble();
}
int64_t wrap(unsigned width, uint64_t value) {
  return width >= 64  ? static_cast<int64_t>(value)
         : width == 1 ? static_cast<int64_t>(value & 1)
                      : llvm::SignExtend64(value, width);
}
uint64_t unsignedOf(unsigned width, int64_t value) {
  return width >= 64 ? static_cast<uint64_t>(value)
                     : static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width);
}
int64_t signedOf(unsigned width, int64_t value) { return width == 1 ? -value : value; }

double maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<double>::quiet_NaN();
  return x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
}
double minimum(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<double>::quiet_NaN();
  return x == y ? (std::signbit(x) ? x : y) : std::min(x, y);
}

/// pow of integers as MLIR folds it; nullopt for 0 to a negative power.
std::optional<int64_t> integerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0)
      return std::nullopt;
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent; exponent >>= 1, factor *= factor)
    if (exponent & 1)
      result *= factor;
  return static_cast<int64_t>(result);
}

struct Function {
  double (*wide)(double);
  float (*narrow)(float);
};
} // namespace

// (operation, code): what has no case of its own in `translateScalar`.
// clang-format off
#define LOWTIDE_FLOAT_BINARY(X) \
  X(arith::AddFOp, AddF) X(arith::SubFOp, SubF) X(arith::MulFOp, MulF) X(arith::DivFOp, DivF) \
  X(arith::RemFOp, RemF) X(arith::MaximumFOp, MaxF) X(arith::MinimumFOp, MinF) X(math::PowFOp, PowF)
#define LOWTIDE_INTEGER_BINARY(X) \
  X(arith::AddIOp, AddI) X(arith::SubIOp, SubI) X(arith::MulIOp, MulI) X(arith::DivSIOp, DivS) \
  X(arith::DivUIOp, DivU) X(arith::RemSIOp, RemS) X(arith::RemUIOp, RemU) X(arith::MaxSIOp, MaxS) \
  X(arith::MaxUIOp, MaxU) X(arith::MinSIOp, MinS) X(arith::MinUIOp, MinU) X(arith::AndIOp, And) \
  X(arith::OrIOp, Or) X(arith::XOrIOp, Xor) X(arith::ShLIOp, ShiftLeft) X(arith::ShRUIOp, ShiftRight) \
  X(arith::ShRSIOp, ShiftRightSigned) X(math::IPowIOp, PowI)
#define LOWTIDE_FUNCTIONS(X) \
  X(math::ExpOp, exp) X(math::ExpM1Op, expm1) X(math::LogOp, log) X(math::Log1pOp, log1p) X(math::SqrtOp, sqrt) \
  X(math::SinOp, sin) X(math::CosOp, cos) X(math::TanOp, tan) X(math::AsinOp, asin) X(math::AcosOp, acos) \
  X(math::AtanOp, atan) X(math::SinhOp, sinh) X(math::CoshOp, cosh) X(math::TanhOp, tanh) \
  X(math::AsinhOp, asinh) X(math::AcoshOp, acosh) X(math::AtanhOp, atanh) X(math::ErfOp, erf) \
  X(math::FloorOp, floor) X(math::CeilOp, ceil) X(math::RoundEvenOp, nearbyint)
// clang-format on

static const Function functions[] = {
#define LOWTIDE_ENTRY(Op, name) {static_cast<double (*)(double)>(std::name), static_cast<float (*)(float)>(std::name)},
    LOWTIDE_FUNCTIONS(LOWTIDE_ENTRY)
#undef LOWTIDE_ENTRY
};

/// Number of the function that `op` calls; -1 for none.
static int functionOf(Operation &op) {
  int number = 0;
#define LOWTIDE_ENTRY(Op, name)                                                                                        \
  if (isa<Op>(op))                                                                                                     \
    return number;                                                                                                     \
  ++number;
  LOWTIDE_FUNCTIONS(LOWTIDE_ENTRY)
#undef LOWTIDE_ENTRY
  return -1;
}

enum class ScalarProgram::Code : uint8_t {
#define LOWTIDE_ENTRY(Op, name) name,
  LOWTIDE_FLOAT_BINARY(LOWTIDE_ENTRY) LOWTIDE_INTEGER_BINARY(LOWTIDE_ENTRY)
#undef LOWTIDE_ENTRY
      Call,
  NegF,
  AbsF,
  AbsI,
  IsNaN,
  IsInf,
  CompareF,
  CompareI,
  Select,
  RoundF,
  FloatToSigned,
  FloatToUnsigned,
  SignedToFloat,
  UnsignedToFloat,
  ExtendUnsigned,
  ConvertI,
  Read,
  Loop,
  Choice,
};

//===-- translation -------------------------------------------------------===//

ScalarProgram::ScalarProgram(ElementRecorder &recorder, Value result) : recorder(recorder) {
  for (BlockArgument argument : recorder.getEntry().getArguments()) {
    indexRegisters.push_back(registerOf(argument));
    dependent[indexRegisters.back()] = true;
  }
  entry = translate(recorder.getEntry());
  resultRegister = registerOf(result);
}

unsigned ScalarProgram::registerOf(Value value) {
  auto [found, isNew] = numbers.try_emplace(value, registers.size());
  if (!isNew)
    return found->second;
  unsigned number = found->second;
  ScalarRegister initial;
  initial.integer = 0;
  complete &= isKnown(value.getType());
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
      initial.real = real.getValueAsDouble();
    else if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()); integer && complete)
      initial.integer = wrap(widthOf(integer.getType()), integer.getValue().getSExtValue());
  }
  registers.push_back(initial);
  dependent.push_back(false);
  return number;
}

SmallVector<unsigned> ScalarProgram::registersOf(ValueRange values) {
  SmallVector<unsigned> list;
  for (Value value : values)
    list.push_back(registerOf(value));
  return list;
}

bool ScalarProgram::anyDependent(ArrayRef<unsigned> list) const {
  return llvm::any_of(list, [&](unsigned number) { return dependent[number]; });
}

bool ScalarProgram::bodyDepends(unsigned body) const {
  return llvm::any_of(bodies[body], [&](const Instruction &i) { return dependent[i.to]; });
}

unsigned ScalarProgram::translate(Block &block) {
  Body body;
  for (Operation &op : block)
    if (!isa<arith::ConstantOp>(op) && complete)
      complete &= translate(op, body);
  bodies.push_back(std::move(body));
  return bodies.size() - 1;
}

bool ScalarProgram::translate(Operation &op, Body &body) {
  if (auto read = recorder.reads.find(&op); read != recorder.reads.end()) {
    DenseElementsAttr values = read->second.values;
    auto &table = tables[values];
    if (!table)
      table = std::make_shared<std::vector<ScalarRegister>>(decodeElements(values));
    Read entry{table, SmallVector<int64_t>(values.getType().getShape()), registersOf(op.getOperands())};
    unsigned to = registerOf(op.getResult(0));
    dependent[to] = anyDependent(entry.index);
    body.push_back({Code::Read, 0, 0, to, static_cast<uint32_t>(reads.size()), 0, 0});
    reads.push_back(std::move(entry));
    return complete;
  }
  if (auto recorded = recorder.loops.find(&op); recorded != recorder.loops.end()) {
    RecordedLoop &source = recorded->second;
    Loop loop;
    loop.extents = source.extents;
    loop.initial = registersOf(op.getOperands());
    auto arguments = registersOf(source.body->getArguments());
    loop.accumulators.assign(arguments.begin(), arguments.begin() + loop.initial.size());
    loop.position.assign(arguments.begin() + loop.initial.size(), arguments.end());
    for (auto [accumulator, initial] : llvm::zip(loop.accumulators, loop.initial))
      dependent[accumulator] = dependent[initial];
    loop.body = translate(*source.body);
    loop.yields = registersOf(source.yields);
    loop.results = registersOf(op.getResults());
    bool depends = anyDependent(loop.initial) || bodyDepends(loop.body) || anyDependent(loop.yields);
    for (unsigned result : loop.results)
      dependent[result] = depends;
    unsigned first = loop.results.empty() ? 0 : loop.results.front();
    body.push_back({Code::Loop, 0, 0, first, static_cast<uint32_t>(loops.size()), 0, 0});
    loops.push_back(std::move(loop));
    return complete;
  }
  if (auto recorded = recorder.choices.find(&op); recorded != recorder.choices.end()) {
    RecordedChoice &source = recorded->second;
    Choice choice;
    choice.condition = registerOf(op.getOperand(0));
    choice.then = translate(*source.then);
    choice.otherwise = translate(*source.otherwise);
    choice.thenValue = registerOf(source.thenValue);
    choice.otherwiseValue = registerOf(source.otherwiseValue);
    choice.result = registerOf(op.getResult(0));
    dependent[choice.result] = anyDependent({choice.condition, choice.thenValue, choice.otherwiseValue});
    body.push_back({Code::Choice, 0, 0, choice.result, static_cast<uint32_t>(choices.size()), 0, 0});
    choices.push_back(choice);
    return complete;
  }
  return translateScalar(op, body);
}

bool ScalarProgram::translateScalar(Operation &op, Body &body) {
  if (op.getNumResults() != 1 || op.getNumOperands() == 0 || op.getNumOperands() > 3)
    return false;
  Instruction instruction{Code::Call, 0, 0, 0, 0, 0, 0};
  SmallVector<unsigned> operands = registersOf(op.getOperands());
  uint32_t *const slots[] = {&instruction.a, &instruction.b, &instruction.c};
  for (auto [slot, number] : llvm::zip(slots, operands))
    *slot = number;
  instruction.to = registerOf(op.getResult(0));
  if (!complete)
    return false;
  dependent[instruction.to] = anyDependent(operands);

  Type from = op.getOperand(0).getType(), to = op.getResult(0).getType();
  auto typeOf = [](Type type) -> uint8_t { return isa<FloatType>(type) ? kindOf(type) : widthOf(type); };
  instruction.type = typeOf(to);
  instruction.from = typeOf(from);
  std::optional<Code> code =
      llvm::TypeSwitch<Operation *, std::optional<Code>>(&op)
#define LOWTIDE_ENTRY(Op, name) .Case([](Op) { return Code::name; })
          LOWTIDE_FLOAT_BINARY(LOWTIDE_ENTRY) LOWTIDE_INTEGER_BINARY(LOWTIDE_ENTRY)
#undef LOWTIDE_ENTRY
              .Case([](arith::NegFOp) { return Code::NegF; })
              .Case([](math::AbsFOp) { return Code::AbsF; })
              .Case([](math::AbsIOp) { return Code::AbsI; })
              .Case([](math::IsNaNOp) { return Code::IsNaN; })
              .Case([](math::IsInfOp) { return Code::IsInf; })
              .Case([&](arith::CmpFOp compare) {
                instruction.c = static_cast<uint32_t>(compare.getPredicate());
                return Code::CompareF;
              })
              .Case([&](arith::CmpIOp compare) {
                instruction.c = static_cast<uint32_t>(compare.getPredicate());
                return Code::CompareI;
              })
              .Case([](arith::SelectOp) { return Code::Select; })
              .Case<arith::ExtFOp, arith::TruncFOp>([](auto) { return Code::RoundF; })
              .Case([](arith::FPToSIOp) { return Code::FloatToSigned; })
              .Case([](arith::FPToUIOp) { return Code::FloatToUnsigned; })
              .Case([](arith::SIToFPOp) { return Code::SignedToFloat; })
              .Case([](arith::UIToFPOp) { return Code::UnsignedToFloat; })
              .Case([](arith::ExtUIOp) { return Code::ExtendUnsigned; })
              .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>([](auto) { return Code::ConvertI; })
              .Default(std::nullopt);
  if (!code) {
    int function = functionOf(op);
    if (function < 0)
      return false;
    instruction.b = function;
    code = Code::Call;
  }
  instruction.code = *code;
  body.push_back(instruction);
  return true;
}

//===-- execution ---------------------------------------------------------===//

static bool compareFloats(arith::CmpFPredicate predicate, double x, double y) {
  switch (predicate) {
  case arith::CmpFPredicate::OEQ:
    return x == y;
  case arith::CmpFPredicate::UNE:
    return !(x == y);
  case arith::CmpFPredicate::OLT:
    return x < y;
  case arith::CmpFPredicate::OLE:
    return x <= y;
  case arith::CmpFPredicate::OGT:
    return x > y;
  case arith::CmpFPredicate::OGE:
    return x >= y;
  default:
    return arith::applyCmpPredicate(predicate, APFloat(x), APFloat(y));
  }
}

bool ScalarProgram::executeRead(const Read &read, ScalarRegister &to) {
  int64_t linear = 0;
  for (auto [number, extent] : llvm::zip(read.index, read.shape)) {
    int64_t position = registers[number].integer;
    if (position < 0 || position >= extent)
      return false;
    linear = linear * extent + position;
  }
  to = (*read.values)[linear];
  return true;
}

bool ScalarProgram::executeLoop(const Loop &loop) {
  SmallVector<ScalarRegister> next(loop.initial.size());
  for (auto [i, number] : llvm::enumerate(loop.initial))
    registers[loop.accumulators[i]] = registers[number];
  for (unsigned number : loop.position)
    registers[number].integer = 0;
  while (true) {
    if (!execute(loop.body))
      return false;
    for (auto [i, number] : llvm::enumerate(loop.yields))
      next[i] = registers[number];
    for (auto [i, number] : llvm::enumerate(loop.accumulators))
      registers[number] = next[i];
    int64_t dim = static_cast<int64_t>(loop.extents.size()) - 1;
    while (dim >= 0 && ++registers[loop.position[dim]].integer == loop.extents[dim])
      registers[loop.position[dim--]].integer = 0;
    if (dim < 0)
      break;
  }
  for (auto [i, number] : llvm::enumerate(loop.results))
    registers[number] = next[i];
  return true;
}

bool ScalarProgram::execute(unsigned number) {
  const Body &body = bodies[number];
  steps -= static_cast<int64_t>(body.size()) + 1;
  if (steps < 0)
    return false;
  for (const Instruction &i : body) {
    ScalarRegister &to = registers[i.to];
    // What is no register (a function, a read) still is a number below their count, or 0 is read in its place.
    const ScalarRegister a = registers[i.a < registers.size() ? i.a : 0];
    const ScalarRegister b = registers[i.b < registers.size() ? i.b : 0];
    auto real = [&](double value) { to.real = roundTo(i.type, value); };
    auto integer = [&](uint64_t value) { to.integer = wrap(i.type, value); };
    uint64_t ua = unsignedOf(i.type, a.integer), ub = unsignedOf(i.type, b.integer);
    int64_t sa = signedOf(i.type, a.integer), sb = signedOf(i.type, b.integer);
    switch (i.code) {
    case Code::AddF:
      real(a.real + b.real);
      break;
    case Code::SubF:
      real(a.real - b.real);
      break;
    case Code::MulF:
      real(a.real * b.real);
      break;
    case Code::DivF:
      real(a.real / b.real);
      break;
    case Code::RemF:
      real(std::fmod(a.real, b.real));
      break;
    case Code::MaxF:
      real(maximum(a.real, b.real));
      break;
    case Code::MinF:
      real(minimum(a.real, b.real));
      break;
    case Code::PowF:
      real(i.type == F64 ? std::pow(a.real, b.real) : std::pow(static_cast<float>(a.real), static_cast<float>(b.real)));
      break;
    case Code::AddI:
      integer(ua + ub);
      break;
    case Code::SubI:
      integer(ua - ub);
      break;
    case Code::MulI:
      integer(ua * ub);
      break;
    case Code::DivS:
    case Code::RemS:
      if (sb == 0 || (sb == -1 && sa == std::numeric_limits<int64_t>::min()))
        return false;
      integer(i.code == Code::DivS ? sa / sb : sa % sb);
      break;
    case Code::DivU:
    case Code::RemU:
      if (ub == 0)
        return false;
      integer(i.code == Code::DivU ? ua / ub : ua % ub);
      break;
    case Code::MaxS:
      integer(std::max(sa, sb));
      break;
    case Code::MinS:
      integer(std::min(sa, sb));
      break;
    case Code::MaxU:
      integer(std::max(ua, ub));
      break;
    case Code::MinU:
      integer(std::min(ua, ub));
      break;
    case Code::And:
      integer(ua & ub);
      break;
    case Code::Or:
      integer(ua | ub);
      break;
    case Code::Xor:
      integer(ua ^ ub);
      break;
    case Code::ShiftLeft:
    case Code::ShiftRight:
    case Code::ShiftRightSigned:
      if (ub >= i.type)
        return false;
      integer(i.code == Code::ShiftLeft    ? ua << ub
              : i.code == Code::ShiftRight ? ua >> ub
                                           : static_cast<uint64_t>(sa >> ub));
      break;
    case Code::PowI:
      if (std::optional<int64_t> power = integerPower(sa, sb))
        integer(*power);
      else
        return false;
      break;
    case Code::Call:
      if (i.type == F64)
        to.real = functions[i.b].wide(a.real);
      else
        real(functions[i.b].narrow(static_cast<float>(a.real)));
      break;
    case Code::NegF:
      to.real = -a.real;
      break;
    case Code::AbsF:
      to.real = std::fabs(a.real);
      break;
    case Code::AbsI:
      integer(sa < 0 ? -static_cast<uint64_t>(sa) : static_cast<uint64_t>(sa));
      break;
    case Code::IsNaN:
      to.integer = std::isnan(a.real);
      break;
    case Code::IsInf:
      to.integer = std::isinf(a.real);
      break;
    case Code::CompareF:
      to.integer = compareFloats(static_cast<arith::CmpFPredicate>(i.c), a.real, b.real);
      break;
    case Code::CompareI: {
      unsigned width = i.from;
      to.integer =
          arith::applyCmpPredicate(static_cast<arith::CmpIPredicate>(i.c), APInt(width, unsignedOf(width, a.integer)),
                                   APInt(width, unsignedOf(width, b.integer)));
      break;
    }
    case Code::Select:
      to = a.integer ? b : registers[i.c];
      break;
    case Code::RoundF:
      real(a.real);
      break;
    case Code::FloatToSigned: {
      // Between the powers of two that bound the type; outside the conversion has no value.
      double whole = std::trunc(a.real), bound = std::ldexp(1.0, i.type - 1);
      if (!(whole >= -bound && whole < bound))
        return false;
      to.integer = wrap(i.type, static_cast<uint64_t>(static_cast<int64_t>(whole)));
      break;
    }
    case Code::FloatToUnsigned: {
      double whole = std::trunc(a.real);
      if (!(whole >= 0 && whole < std::ldexp(1.0, i.type)))
        return false;
      to.integer = wrap(i.type, static_cast<uint64_t>(whole));
      break;
    }
    case Code::SignedToFloat:
      to.real = i.type == F64   ? static_cast<double>(signedOf(i.from, a.integer))
                : i.type == F32 ? static_cast<float>(signedOf(i.from, a.integer))
                                : roundTo(i.type, static_cast<double>(signedOf(i.from, a.integer)));
      break;
    case Code::UnsignedToFloat: {
      uint64_t value = unsignedOf(i.from, a.integer);
      to.real = i.type == F64   ? static_cast<double>(value)
                : i.type == F32 ? static_cast<float>(value)
                                : roundTo(i.type, static_cast<double>(value));
      break;
    }
    case Code::ExtendUnsigned:
      integer(unsignedOf(i.from, a.integer));
      break;
    case Code::ConvertI:
      integer(static_cast<uint64_t>(signedOf(i.from, a.integer)));
      break;
    case Code::Read:
      if (!executeRead(reads[i.a], to))
        return false;
      break;
    case Code::Loop:
      if (!executeLoop(loops[i.a]))
        return false;
      break;
    case Code::Choice: {
      const Choice &choice = choices[i.a];
      bool taken = registers[choice.condition].integer;
      if (!execute(taken ? choice.then : choice.otherwise))
        return false;
      registers[choice.result] = registers[taken ? choice.thenValue : choice.otherwiseValue];
      break;
    }
    }
  }
  return true;
}

std::vector<ScalarRegister> ScalarProgram::run(ArrayRef<int64_t> shape, int64_t stepLimit) {
  steps = stepLimit;
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  if (!dependsOnIndex())
    count = std::min<int64_t>(count, 1);
  std::vector<ScalarRegister> elements;
  elements.reserve(count);
  for (unsigned number : indexRegisters)
    registers[number].integer = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!execute(entry))
      return {};
    elements.push_back(registers[resultRegister]);
    for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
      if (++registers[indexRegisters[dim]].integer < shape[dim])
        break;
      registers[indexRegisters[dim]].integer = 0;
    }
  }
  return elements;
}
