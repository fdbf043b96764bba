//===- Report.h - the memory of an artifact, drawn --------------*- C++ -*-===//
//
// Reads a proved artifact and tells, instruction by instruction, which bytes are live, what they are and whose they
// are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "plan.pb.h"
#include "runtime/Status.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <string>
#include <vector>

namespace lowtide::report {

/// What transient bytes are.
enum class Component : uint8_t {
  Saved,     ///< made before the loss, read after it
  Gradient,  ///< read by an instruction that updates a parameter
  Temporary, ///< everything else
  Output,    ///< kept to the end for the user
  Workspace, ///< scratch and library workspaces
};
inline constexpr size_t numComponents = 5;
/// "saved activations", …
llvm::StringRef getName(Component component);

/// One value in a transient arena.
struct Tensor {
  uint64_t value = 0, offset = 0, bytes = 0;
  /// Live during instructions begin … end - 1.
  unsigned begin = 0, end = 0;
  Component component = Component::Temporary;
  /// ONNX node or module path that made it, and what made it: "gemm", "loop: add mul".
  std::string place, maker;
};

/// One entry of the plan.
struct Entry {
  std::string name;
  int64_t batch = 0;
  std::vector<std::string> instructions; ///< what each one is, for labels
  std::vector<Tensor> tensors;
  /// Bytes live at each instruction, by component.
  std::vector<std::array<uint64_t, numComponents>> live;
  uint64_t peakBytes = 0;
  unsigned peakAt = 0;
  uint64_t flops = 0;
};

/// A whole artifact. Bytes are those that the runtime allocates.
struct Report {
  std::string title, target, producer;
  uint64_t paramsBytes = 0, stateBytes = 0, ioBytes = 0, transientBytes = 0;
  std::vector<Entry> entries;
};

/// Reads the plan; `title` heads the report.
Report buildReport(const plan::Plan &plan, llvm::StringRef title);

/// One offline HTML file: waterline and address map per entry as SVG, the tensors alive at the peak as a table, the
/// same data as JSON inside.
void printHtml(const Report &report, llvm::raw_ostream &os);
void printJson(const Report &report, llvm::raw_ostream &os);
/// The waterline of the entry `train` (or the first one) as a picture of its own.
void printSvg(const Report &report, llvm::raw_ostream &os);

/// Reads the artifact `input` and writes its report to `output` ("-": standard output); `format` is "html", "svg" or
/// "json".
rt::Status writeReport(const std::string &input, const std::string &output, llvm::StringRef format);

} // namespace lowtide::report
