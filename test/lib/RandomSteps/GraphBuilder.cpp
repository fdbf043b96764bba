//===- GraphBuilder.cpp - ops of a random graph, one call each --*- C++ -*-===//
//
// Types and text of each op.
//
//===----------------------------------------------------------------------===//
#include "GraphBuilder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace lowtide::test;
using llvm::ArrayRef;
using llvm::StringRef;

uint64_t RandomNumbers::next() {
  // SplitMix64 (Steele, Lea and Flood 2014).
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::string lowtide::test::listText(ArrayRef<int64_t> numbers) {
  std::string text = "[";
  for (auto [i, number] : llvm::enumerate(numbers))
    text += (i ? ", " : "") + std::to_string(number);
  return text + "]";
}

double GraphBuilder::scaleFor(int64_t inputs) { return std::sqrt(3.0 / static_cast<double>(inputs)); }

Use GraphBuilder::param(Dims dims, double size) {
  TensorShape wanted{dims, "f32"};
  if (random.chance(20))
    for (unsigned i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].kind == Node::Kind::Param && graph.nodes[i].results[0] == wanted)
        return {i, 0};
  Node node;
  node.kind = Node::Kind::Param;
  node.results.push_back(wanted);
  // A vector is a scale more often than a shift.
  node.low = dims.size() == 1 && size == 0 ? 0.5 : -size;
  node.high = dims.size() == 1 && size == 0 ? 1.5 : size;
  return {graph.add(node), 0};
}

Use GraphBuilder::batchArray(Dims dims, StringRef element, double low, double high) {
  Node node;
  node.kind = Node::Kind::Batch;
  node.results.push_back({dims, element.str()});
  node.low = low;
  node.high = high;
  return {graph.add(node), 0};
}

Use GraphBuilder::scalar(StringRef name) {
  for (unsigned i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == Node::Kind::Scalar && graph.nodes[i].text == name)
      return {i, 0};
  Node node;
  node.kind = Node::Kind::Scalar;
  node.text = name.str();
  node.results.push_back({{}, "i64"});
  return {graph.add(node), 0};
}

Use GraphBuilder::op(const std::string &text, ArrayRef<Use> operands, ArrayRef<TensorShape> results) {
  Node node;
  node.text = "nn." + text;
  node.operands.assign(operands.begin(), operands.end());
  node.results.assign(results.begin(), results.end());
  return {graph.add(node), 0};
}

Use GraphBuilder::unary(StringRef name, Use x, StringRef attributes) {
  std::string extra = attributes.empty() ? "" : (" " + attributes).str();
  return op(name.str() + " $0" + extra + " : " + shape(x).text(), {x}, {shape(x)});
}

Use GraphBuilder::binary(StringRef name, Use a, Use b) {
  return op(name.str() + " $0, $1 : " + shape(a).text(), {a, b}, {shape(a)});
}

Use GraphBuilder::constant(const TensorShape &shape, double value) {
  std::string number = shape.isFloat() ? llvm::formatv("{0:E6}", value).str() : std::to_string(int64_t(value));
  return op("constant dense<" + number + "> : " + shape.text(), {}, {shape});
}

Use GraphBuilder::withConstant(StringRef name, Use x, double value) {
  return binary(name, x, constant(shape(x), value));
}

Use GraphBuilder::compare(StringRef predicate, Use a, Use b) {
  TensorShape result{shape(a).dims, "i1"};
  return op("compare " + predicate.str() + " $0, $1 : " + shape(a).text() + " -> " + result.text(), {a, b}, {result});
}

Use GraphBuilder::select(Use condition, Use a, Use b) {
  return op("select $0, $1, $2 : " + shape(condition).text() + ", " + shape(a).text(), {condition, a, b}, {shape(a)});
}

Use GraphBuilder::cast(Use x, StringRef element) {
  TensorShape result{shape(x).dims, element.str()};
  return op("cast $0 : " + shape(x).text() + " -> " + result.text(), {x}, {result});
}

Use GraphBuilder::broadcast(Use x, Dims to, ArrayRef<int64_t> dims) {
  TensorShape result{to, shape(x).element};
  if (result == shape(x))
    return x;
  return op("broadcast $0 dims = " + listText(dims) + " : " + shape(x).text() + " -> " + result.text(), {x}, {result});
}

Use GraphBuilder::reshape(Use x, Dims to) {
  TensorShape result{to, shape(x).element};
  if (result == shape(x))
    return x;
  return op("reshape $0 : " + shape(x).text() + " -> " + result.text(), {x}, {result});
}

Use GraphBuilder::transpose(Use x, ArrayRef<int64_t> permutation) {
  TensorShape result{{}, shape(x).element};
  for (int64_t from : permutation)
    result.dims.push_back(dim(x, from));
  return op("transpose $0 " + listText(permutation) + " : " + shape(x).text() + " -> " + result.text(), {x}, {result});
}

Use GraphBuilder::slice(Use x, ArrayRef<int64_t> starts, ArrayRef<int64_t> strides, Dims to) {
  TensorShape result{to, shape(x).element};
  return op("slice $0 starts = " + listText(starts) + " strides = " + listText(strides) + " : " + shape(x).text() +
                " -> " + result.text(),
            {x}, {result});
}

Use GraphBuilder::concat(ArrayRef<Use> parts, int64_t dim) {
  TensorShape result = shape(parts[0]);
  result.dims[dim] = 0;
  std::string names, types;
  for (auto [i, part] : llvm::enumerate(parts)) {
    result.dims[dim] += shape(part).dims[dim];
    names += (i ? ", $" : "$") + std::to_string(i);
    types += (i ? ", " : "") + shape(part).text();
  }
  return op("concat " + names + " dim = " + std::to_string(dim) + " : (" + types + ") -> " + result.text(), parts,
            {result});
}

Use GraphBuilder::reduce(StringRef name, Use x, ArrayRef<int64_t> dims) {
  TensorShape result{{}, shape(x).element};
  for (int64_t i = 0; i < rank(x); ++i)
    if (!llvm::is_contained(dims, i))
      result.dims.push_back(dim(x, i));
  return op(name.str() + " $0 dims = " + listText(dims) + " : " + shape(x).text() + " -> " + result.text(), {x},
            {result});
}

Use GraphBuilder::dot(Use a, Use b, bool transposeA, bool transposeB) {
  int64_t last = rank(a) - 1;
  TensorShape result = shape(a);
  result.dims[last - 1] = dim(a, transposeA ? last : last - 1);
  result.dims[last] = dim(b, transposeB ? last - 1 : last);
  std::string attributes = transposeA && transposeB ? " {transpose_a, transpose_b}"
                           : transposeA             ? " {transpose_a}"
                           : transposeB             ? " {transpose_b}"
                                                    : "";
  return op("dot $0, $1" + attributes + " : (" + shape(a).text() + ", " + shape(b).text() + ") -> " + result.text(),
            {a, b}, {result});
}

Use GraphBuilder::gather(Use x, Use indices, int64_t axis) {
  TensorShape result{{}, shape(x).element};
  for (int64_t i = 0; i < rank(x); ++i)
    if (i != axis)
      result.dims.push_back(dim(x, i));
    else
      result.dims.append(shape(indices).dims.begin(), shape(indices).dims.end());
  return op("gather $0[$1] axis = " + std::to_string(axis) + " : (" + shape(x).text() + ", " + shape(indices).text() +
                ") -> " + result.text(),
            {x, indices}, {result});
}
