//===- ExternalDataTest.cpp - a model reads no file but its own ---------------------===//

#include "TestModel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace lowtide;
using namespace lowtide::test;
namespace fs = std::filesystem;
using testing::HasSubstr;

namespace {
/// A folder with a model whose weight `w` (48 bytes) is described by entries.
class ExternalData : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "lowtide-test-XXXXXX";
    root = mkdtemp(pattern.data());
    fs::create_directories(root / "model" / "inner");
    write(root / "secret.bin", 4096);
    write(root / "model" / "w.bin", 64);
    write(root / "model" / "inner" / "w.bin", 64);
  }
  void TearDown() override { fs::remove_all(root); }

  static void write(const fs::path &path, size_t size) {
    std::ofstream file(path, std::ios::binary);
    for (size_t i = 0; i != size; ++i)
      file.put(static_cast<char>(i));
  }

  /// Says that the tensor's data lie in another file.
  static void moveOut(::onnx::TensorProto &tensor, const std::vector<std::pair<std::string, std::string>> &entries) {
    tensor.clear_float_data();
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    for (const auto &[key, value] : entries) {
      auto *entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  }

  /// Reads `w`; returns its bytes, or the messages with exit code in front.
  std::string read(std::vector<std::pair<std::string, std::string>> entries) {
    auto model = makeLinear();
    moveOut(*model.mutable_graph()->mutable_initializer(0), entries);
    RecordingContext recording;
    OnnxFile file(recording.context, (root / "model" / "m.onnx").string());
    std::string bytes = model.SerializeAsString();
    std::string data;
    if (mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size()))) &&
        mlir::succeeded(
            file.readInitializer("w", [&](llvm::ArrayRef<char> piece) { data.append(piece.begin(), piece.end()); })))
      return data;
    return getName(file.getFailure()).str() + " " + recording.messages;
  }

  fs::path root;
};
} // namespace

TEST_F(ExternalData, IsReadFromTheModelsFolder) {
  std::string data = read({{"location", "w.bin"}});
  ASSERT_EQ(data.size(), 48u);
  EXPECT_EQ(data[5], 5);
  EXPECT_EQ(read({{"location", "inner/w.bin"}, {"offset", "16"}, {"length", "48"}})[0], 16);
  EXPECT_EQ(read({{"location", "./inner/../w.bin"}}).substr(0, 10), "bad-input ");
}

TEST_F(ExternalData, OfConstantNodesIsRead) {
  // onnx.save(..., convert_attribute=True)
  auto model = makeLinear();
  ::onnx::NodeProto node;
  node.set_op_type("Constant");
  node.add_output("w");
  auto &value = *node.add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  value.mutable_t()->Swap(model.mutable_graph()->mutable_initializer(0));
  model.mutable_graph()->mutable_initializer()->DeleteSubrange(0, 1);
  value.mutable_t()->clear_float_data();
  value.mutable_t()->set_data_location(::onnx::TensorProto::EXTERNAL);
  auto *entry = value.mutable_t()->add_external_data();
  entry->set_key("location");
  entry->set_value("w.bin");
  *model.mutable_graph()->add_node() = node;
  auto &nodes = *model.mutable_graph()->mutable_node();
  std::rotate(nodes.pointer_begin(), nodes.pointer_end() - 1, nodes.pointer_end());
  RecordingContext recording;
  OnnxFile file(recording.context, (root / "model" / "m.onnx").string());
  std::string bytes = model.SerializeAsString();
  size_t size = 0;
  ASSERT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size())))) << recording.messages;
  ASSERT_TRUE(mlir::succeeded(file.readInitializer("w", [&](llvm::ArrayRef<char> piece) { size += piece.size(); })));
  EXPECT_EQ(size, 48u);
}

TEST_F(ExternalData, TellsOfTies) {
  // A head's weight is the embedding's; the exporter evaluated its transpose.
  auto tie = [&](const std::string &name, float last) {
    ::onnx::ModelProto model = parseModel(R"(
      <ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
      g (int64[2] x) => (float[2,3] y) <float[3,2] "e.weight" = {0}, float[2,3] head = {0}> {
        h = Gather("e.weight", x)
        y = MatMul(h, head)
      })");
    renameValue(model, "head", name);
    const float rows[] = {1, 2, 3, 4, 5, 6}, columns[] = {1, 3, 5, 2, 4, last};
    std::ofstream data(root / "model" / "w.bin", std::ios::binary);
    data.write(reinterpret_cast<const char *>(rows), sizeof(rows));
    data.write(reinterpret_cast<const char *>(columns), sizeof(columns));
    data.close();
    for (int i : {0, 1})
      moveOut(*model.mutable_graph()->mutable_initializer(i),
              {{"location", "w.bin"}, {"offset", i ? "24" : "0"}, {"length", "24"}});
    RecordingContext recording;
    OnnxFile file(recording.context, (root / "model" / "m.onnx").string());
    std::string bytes = model.SerializeAsString();
    EXPECT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size())))) << recording.messages;
    auto infos = classifyInitializers(file, {});
    return mlir::succeeded(infos) && llvm::any_of(*infos, [](const InitializerInfo &info) { return info.viewOf; });
  };
  EXPECT_TRUE(tie("onnx::MatMul_9", 6));
  EXPECT_FALSE(tie("onnx::MatMul_9", 7));
  // A name of its own tells a parameter of its own, and its file is not read for this.
  EXPECT_FALSE(tie("head.weight", 6));
}

TEST_F(ExternalData, NeverLeavesTheFolder) {
  for (const char *path : {"../secret.bin", "inner/../../secret.bin", "..", "inner/..", "/etc/passwd", "//etc/passwd",
                           "", "a/../../secret.bin"})
    EXPECT_EQ(read({{"location", path}}).substr(0, 10), "bad-input ") << path;
  EXPECT_THAT(read({{"location", std::string("w.bin\0x", 7)}}), HasSubstr("zero byte"));
  EXPECT_THAT(read({{"location", root / "secret.bin"}}), HasSubstr("absolute"));
}

TEST_F(ExternalData, FollowsNoLinks) {
  fs::path model = root / "model";
  fs::create_symlink(root / "secret.bin", model / "link.bin");
  fs::create_symlink("w.bin", model / "near.bin");
  fs::create_directory_symlink(root, model / "up");
  fs::create_directory_symlink("/proc/self", model / "proc");
  for (const char *path : {"link.bin", "near.bin", "up/secret.bin", "proc/maps"})
    EXPECT_THAT(read({{"location", path}}), HasSubstr("links are not followed")) << path;
  fs::create_hard_link(root / "secret.bin", model / "hard.bin");
  EXPECT_THAT(read({{"location", "hard.bin"}}), HasSubstr("2 hard links"));
}

TEST_F(ExternalData, ReadsPlainFilesOnly) {
  fs::path model = root / "model";
  ASSERT_EQ(mkfifo((model / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read({{"location", "pipe"}}), HasSubstr("not a plain file"));
  EXPECT_THAT(read({{"location", "inner"}}), HasSubstr("not a plain file"));
  if (mknod((model / "null").c_str(), S_IFCHR | 0600, (1 << 8) | 5) == 0)
    EXPECT_THAT(read({{"location", "null"}}), HasSubstr("not a plain file"));
}

TEST_F(ExternalData, MissingFileSaysWhatToDo) {
  EXPECT_THAT(read({{"location", "absent.bin"}}), HasSubstr("io "));
  EXPECT_THAT(read({{"location", "absent.bin"}}), HasSubstr("not beside the model"));
  EXPECT_THAT(read({{"location", "absent.bin"}}), HasSubstr("--no-weights"));
  EXPECT_THAT(read({{"location", "absent/w.bin"}}), HasSubstr("not beside the model"));
}

TEST_F(ExternalData, RangesAreChecked) {
  auto range = [&](const char *key, const char *value) { return read({{"location", "w.bin"}, {key, value}}); };
  EXPECT_THAT(range("offset", "17"), HasSubstr("past the end"));
  EXPECT_THAT(range("offset", "9223372036854775807"), HasSubstr("past the end"));
  EXPECT_THAT(range("offset", "18446744073709551615"), HasSubstr("not a number of bytes"));
  EXPECT_THAT(range("offset", "-1"), HasSubstr("not a number of bytes"));
  EXPECT_THAT(range("offset", "0x10"), HasSubstr("not a number of bytes"));
  EXPECT_THAT(range("offset", ""), HasSubstr("not a number of bytes"));
  EXPECT_THAT(range("length", "47"), HasSubstr("where the shape needs 48"));
  EXPECT_THAT(range("length", "1125899906842624"), HasSubstr("where the shape needs 48"));
}

TEST_F(ExternalData, KeysAreKnown) {
  EXPECT_THAT(read({{"location", "w.bin"}, {"__class__", "x"}}), HasSubstr("is unknown"));
  EXPECT_THAT(read({{"location", "w.bin"}, {"location", "w.bin"}}), HasSubstr("occurs twice"));
  EXPECT_THAT(read({{"offset", "0"}}), HasSubstr("no location"));
  EXPECT_EQ(read({{"location", "w.bin"}, {"checksum", "abc"}}).size(), 48u);
}

/// Shapes are needed to compile: they are read even when every tensor lies in another file.
TEST_F(ExternalData, SmallIntegersAreReadIntoTheIR) {
  auto model = parseModel(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[3,2] y) <int64[2] shape = {0, 0}> { y = Reshape(x, shape) })");
  auto *tensor = model.mutable_graph()->mutable_initializer(0);
  tensor->clear_int64_data();
  tensor->set_data_location(::onnx::TensorProto::EXTERNAL);
  auto *entry = tensor->add_external_data();
  entry->set_key("location");
  entry->set_value("w.bin");
  RecordingContext recording;
  OnnxFile file(recording.context, (root / "model" / "m.onnx").string());
  std::string bytes = model.SerializeAsString();
  ASSERT_TRUE(mlir::succeeded(file.loadBytes(llvm::ArrayRef(bytes.data(), bytes.size()))));
  auto infos = classifyInitializers(file, {});
  ASSERT_TRUE(mlir::succeeded(infos));
  EXPECT_TRUE(infos->front().inIR);
  EXPECT_TRUE(mlir::succeeded(importOnnx(file, *infos, {}))) << recording.messages;
}
