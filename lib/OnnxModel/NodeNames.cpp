//===- NodeNames.cpp - what messages call nodes and values ------------------------===//

#include "lowtide/OnnxModel/NodeNames.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "onnx/onnx_pb.h"

using namespace llvm;
using namespace lowtide;
using ::onnx::NodeProto;

std::string lowtide::quoteName(StringRef name) {
  constexpr size_t maxBytes = 128;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '\'';
  for (char c : name.take_front(maxBytes)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      os << "\\x" << llvm::hexdigit((c >> 4) & 15) << llvm::hexdigit(c & 15);
    else
      os << c;
  }
  if (name.size() > maxBytes)
    os << "…";
  os << '\'';
  return text;
}

StringRef lowtide::nodeLabel(const NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  for (const std::string &output : node.output())
    if (!output.empty())
      return output;
  return node.op_type();
}

std::string lowtide::describeNode(const NodeProto &node) {
  return StringRef(node.op_type()).take_front(64).str() + " " + quoteName(nodeLabel(node));
}
