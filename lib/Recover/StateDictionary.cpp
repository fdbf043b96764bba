//===- StateDictionary.cpp - what the exporting module saves ---------------------===//
//
// A module's state dictionary holds its parameters and its persistent buffers. The program's signature lists both; the
// old exporter names initializers after its entries. Counters of batch norms leave every file, for nothing reads them.
//
//===----------------------------------------------------------------------===//

#include "lowtide/Recover/StateDictionary.h"

#include "Classifier.h"
#include "lowtide/OnnxModel/TensorData.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace mlir;
using namespace lowtide;

static constexpr llvm::StringLiteral counterLeaf = "num_batches_tracked";

static std::string inModule(StringRef module, StringRef leaf) {
  return (module.empty() ? "" : module.str() + ".") + leaf.str();
}

namespace {
class SavedConstants {
public:
  SavedConstants(ModelView &file, ArrayRef<InitializerInfo> infos, MLIRContext *context)
      : file(file), builder(context) {
    for (const InitializerInfo &info : infos) {
      if (info.viewOf)
        continue;
      byName.try_emplace(info.name, &info);
      for (const std::string &name : info.tied)
        byName.try_emplace(name, &info);
    }
  }

  /// Lists entry `name`; false: the file does not hold it. `counts`: a counter of batch norms goes up with its mean.
  bool add(StringRef name, bool counts = true);
  ArrayAttr finish() const { return builder.getArrayAttr(entries); }

private:
  void append(StringRef name, DenseElementsAttr value, StringRef follows) {
    SmallVector<NamedAttribute> fields{builder.getNamedAttr("name", builder.getStringAttr(name))};
    if (value)
      fields.push_back(builder.getNamedAttr("value", value));
    if (!follows.empty())
      fields.push_back(builder.getNamedAttr("follows", builder.getStringAttr(follows)));
    entries.push_back(builder.getDictionaryAttr(fields));
  }
  /// The values of a small constant in the module's own shape; null: not known.
  DenseElementsAttr valueOf(const InitializerInfo &info) const;

  ModelView &file;
  mutable Builder builder;
  llvm::StringMap<const InitializerInfo *> byName;
  SmallVector<Attribute> entries;
};
} // namespace

DenseElementsAttr SavedConstants::valueOf(const InitializerInfo &info) const {
  std::optional<std::string> bytes = file.tryReadInitializer(info.tensor);
  if (!bytes || !info.transposed.empty() || info.sourceRows)
    return {};
  return buildElements(info.sourceShape.value_or(info.dims), info.dataType,
                       ArrayRef<char>(bytes->data(), bytes->size()), builder.getContext());
}

bool SavedConstants::add(StringRef name, bool counts) {
  const InitializerInfo *info = byName.lookup(name);
  if (leafOf(name) == counterLeaf) {
    const InitializerInfo *mean = byName.lookup(inModule(moduleOf(name), "running_mean"));
    DenseElementsAttr start = info && info->inIR ? valueOf(*info) : DenseElementsAttr();
    if (!start && (info || !mean))
      return false;
    auto scalar = RankedTensorType::get({}, builder.getI64Type());
    append(name, start ? start : DenseElementsAttr::get(scalar, int64_t(0)),
           mean && counts ? StringRef(mean->name) : "");
    return true;
  }
  if (!info)
    return false;
  if (info->role != InitializerRole::Constant)
    return true;
  DenseElementsAttr value = info->inIR ? valueOf(*info) : DenseElementsAttr();
  if (info->inIR && !value)
    return false;
  append(info->inIR ? name : StringRef(info->name), value, "");
  return true;
}

ArrayAttr lowtide::listSavedConstants(ModelView &file, ArrayRef<InitializerInfo> infos, MLIRContext *context) {
  SavedConstants saved(file, infos, context);
  const ::onnx::ModelProto &model = file.getModel();
  if (Signature signature(model.graph()); signature.isPresent()) {
    SmallVector<StringRef> lost;
    for (const SignatureEntry &entry : signature.getEntries()) {
      // A program that calls F.batch_norm on a module's statistics does not count.
      const SignatureEntry *mean = signature.findTarget(inModule(moduleOf(entry.target), "running_mean"));
      const bool counts = entry.mutated || !mean || !mean->mutated;
      if (entry.isSaved() && !saved.add(entry.target, counts) && entry.kind == SignatureEntry::Buffer)
        lost.push_back(entry.target);
    }
    if (!lost.empty())
      file.getReport().add({FindingKind::BuffersNotSaved, lost.front().str(), {lost.begin(), lost.end()}});
    return saved.finish();
  }
  if (model.producer_name() != "pytorch" || isOfCurrentExporter(model.graph()))
    return saved.finish();
  for (const InitializerInfo &info : infos) {
    if (info.role == InitializerRole::Constant && info.name == info.tensor && !isInventedName(info.name)) {
      saved.add(info.name);
      for (const std::string &name : info.tied)
        if (name != info.name)
          saved.add(name);
    }
    if (info.role == InitializerRole::State && leafOf(info.name) == "running_mean")
      saved.add(inModule(moduleOf(info.name), counterLeaf));
  }
  return saved.finish();
}
