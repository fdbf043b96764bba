//===- OnnxGraph.h - nodes and values as protobuf messages ------*- C++ -*-===//
//
// The part of writing a model that knows nodes, names and constants, and neither bindings nor weights.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Dialect/ONNX/ONNX.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace lowtide {

/// Adds `key = value` to the metadata of a message.
template <typename Message> void addMetadata(Message &message, llvm::StringRef key, llvm::StringRef value) {
  ::onnx::StringStringEntryProto *entry = message.add_metadata_props();
  entry->set_key(key.str());
  entry->set_value(value.str());
}

/// Type and shape of a value, under its name.
void describeValue(llvm::StringRef name, mlir::RankedTensorType type, ::onnx::ValueInfoProto &info);

/// Writes the nodes of blocks into graphs. Constants become initializers of the main graph, equal ones once.
class OnnxGraphWriter {
public:
  explicit OnnxGraphWriter(::onnx::GraphProto &main) : main(main) {}

  /// `wanted`, or with a number after it when that name is taken.
  std::string uniqueName(const llvm::Twine &wanted);
  void name(mlir::Value value, llvm::StringRef chosen) { names[value] = chosen.str(); }
  const std::string &nameOf(mlir::Value value) { return names[value]; }

  /// Writes all nodes of `block`; their results take the names that were given to them before, or ones of their place.
  void writeNodes(mlir::Block &block, ::onnx::GraphProto &graph);
  /// Writes a function of the domain `lowtide`: constants are nodes of its body.
  static void writeFunction(mlir::func::FuncOp function, int64_t opset, ::onnx::FunctionProto &proto);
  uint64_t getNumNodes() const { return numNodes; }

private:
  void writeNode(onnx::NodeOp op, ::onnx::GraphProto &graph);
  void writeConstant(onnx::ConstantOp op);
  void writeSubgraph(mlir::Region &region, llvm::StringRef name, ::onnx::GraphProto &graph);

  ::onnx::GraphProto &main;
  llvm::DenseMap<mlir::Value, std::string> names;
  llvm::DenseMap<mlir::Attribute, std::string> constants;
  llvm::StringSet<> taken;
  llvm::StringMap<unsigned> numbers;
  uint64_t numNodes = 0;
};

} // namespace lowtide
