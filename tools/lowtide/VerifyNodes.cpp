//===- VerifyNodes.cpp - every node's value next to ONNX Runtime's -*- C++ -*-===//
//
// The forward pass in inference form, with the results of all nodes as outputs.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Diagnostics.h"
#include "Inspect.h"
#include "VerifyModel.h"
#include "lowtide/Compiler/ModelFile.h"
#include "runtime/Session.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace lowtide;
using namespace lowtide::driver;

/// It computes in f32, and its errors add up from node to node.
static constexpr double f32Factor = 100;

namespace {
struct Result {
  size_t nodes = 0, compared = 0;
  double tolerance = 0;
  const verify::Row *first = nullptr;
  std::string node; ///< "node_conv2d (Conv)"
};
} // namespace

/// The node that computes a value, as the file has it; its operator.
static std::string findNode(const Options &options, llvm::StringRef value, size_t &count) {
  DiagnosticPrinter printer(/*verbosity=*/-1, options.log);
  const ModelNames names = readModelNames(options.input, &printer);
  if (names.failure)
    return "";
  count = names.nodes.size();
  for (const ModelNode &node : names.nodes)
    if (llvm::is_contained(node.outputs, value))
      return (node.name.empty() ? value.str() : node.name) + " (" + node.op + ")";
  return value.str();
}

static int report(const Options &options, const Result &result, llvm::StringRef producer) {
  if (options.json) {
    llvm::json::Object object{{"model", options.input},         {"against", options.against},
                              {"agrees", !result.first},        {"tolerance", result.tolerance},
                              {"nodes", int64_t(result.nodes)}, {"compared", int64_t(result.compared)},
                              {"first_node", nullptr}};
    if (result.first)
      object["first_node"] = llvm::json::Object{{"node", result.node},
                                                {"value", result.first->name},
                                                {"difference", result.first->difference},
                                                {"largest", result.first->largest}};
    llvm::outs() << llvm::json::Value(std::move(object)) << "\n";
    return result.first ? exitExpectation : exitOk;
  }
  llvm::outs() << options.input << " against " << producer << ": forward values in inference form, tolerance "
               << llvm::format("%.2e", result.tolerance) << "\n";
  if (!result.first) {
    llvm::outs() << "everything agrees: " << result.compared << " values of " << result.nodes << " nodes\n";
    return exitOk;
  }
  llvm::outs() << "first node that differs: '" << rt::printable(result.node) << "', value '"
               << rt::printable(result.first->name) << "', by " << llvm::format("%.2e", result.first->difference)
               << " where its largest entry is " << llvm::format("%.2e", result.first->largest) << "\n";
  return exitExpectation;
}

int driver::verifyNodes(const Options &options, const std::string &scratch) {
  FileNames names;
  if (int code = readNames(options, names))
    return code;
  if (int code = makeValues(options, scratch + ".npz"))
    return code;
  rt::Expected<verify::Record> record = verify::Record::openOutputs(scratch + ".npz");
  if (!record)
    return fail(record.status());
  Options step = proofOptions(options, scratch + ".tide");
  step.mode = "train"; // whose evaluation has batch norms in inference form
  step.entries = {"eval"};
  step.outputs = {"all"};
  for (const auto &[name, value] : record->outputs)
    step.watched.push_back(name);
  bindShapes(*record, names, step);
  if (int code = compileQuietly(step))
    return code;
  rt::Expected<std::unique_ptr<rt::Session>> session = rt::Session::load(step.output);
  if (!session)
    return fail(session.status());
  rt::Expected<verify::Arrays> ours = verify::runOutputs(**session, *record, "eval");
  if (!ours)
    return fail(ours.status());
  // What the importer evaluates or takes apart is no value of the step.
  llvm::erase_if(record->outputs, [&](const auto &output) { return !ours->count(output.first); });
  std::map<std::string, std::vector<const verify::Array *>> values;
  for (const auto &[name, array] : *ours)
    values[name].push_back(&array);
  Result result;
  result.tolerance = options.tolerance * f32Factor;
  const std::vector<verify::Row> rows = verify::compareOutputs(values, *record, result.tolerance);
  auto first = llvm::find_if(rows, [](const verify::Row &row) { return row.verdict == verify::Verdict::Differs; });
  result.compared = rows.size();
  result.first = first == rows.end() ? nullptr : &*first;
  result.node = findNode(options, result.first ? result.first->name : "", result.nodes);
  return report(options, result, record->producer);
}
