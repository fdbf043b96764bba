//===- DataTest.cpp - arrays from files that anyone may have written -------===//

#include "Regression.h"
#include "runtime/Element.h"
#include "runtime/Json.h"
#include "runtime/Schedule.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/data/Feeder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <zlib.h>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::rt::test;

namespace {

std::span<const uint8_t> span(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}
template <typename T> std::string raw(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}
void put(std::string &to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    to += static_cast<char>(value >> (8 * i));
}

/// A zip archive as numpy writes it.
std::string zip(const std::vector<std::pair<std::string, std::string>> &members, bool deflated) {
  std::string file, directory;
  for (const auto &[name, content] : members) {
    std::string packed = content;
    if (deflated) {
      packed.resize(compressBound(content.size()) + 64);
      z_stream stream = {};
      deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(content.data()));
      stream.avail_in = static_cast<uInt>(content.size());
      stream.next_out = reinterpret_cast<Bytef *>(packed.data());
      stream.avail_out = static_cast<uInt>(packed.size());
      deflate(&stream, Z_FINISH);
      packed.resize(stream.total_out);
      deflateEnd(&stream);
    }
    uint64_t offset = file.size(), crc = crc32_z(0, reinterpret_cast<const Bytef *>(content.data()), content.size());
    auto fields = [&](std::string &to) {
      put(to, 20, 2), put(to, 0, 2), put(to, deflated ? 8 : 0, 2), put(to, 0, 4);
      put(to, crc, 4), put(to, packed.size(), 4), put(to, content.size(), 4), put(to, name.size(), 2), put(to, 0, 2);
    };
    put(file, 0x04034b50, 4), fields(file);
    file += name + packed;
    put(directory, 0x02014b50, 4), put(directory, 20, 2), fields(directory);
    put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4), put(directory, offset, 4);
    directory += name;
  }
  uint64_t start = file.size();
  file += directory;
  put(file, 0x06054b50, 4), put(file, 0, 4), put(file, members.size(), 2), put(file, members.size(), 2);
  put(file, directory.size(), 4), put(file, start, 4), put(file, 0, 2);
  return file;
}

std::string samplesNpy(int64_t rows) {
  std::vector<float> x(static_cast<size_t>(rows * width));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i);
  return npy("<f4", "(" + std::to_string(rows) + ", 8)", x.data(), x.size() * 4);
}

TEST(Npy, ReadsWhatNumpyWrites) {
  std::vector<int64_t> values = {1, 2, 3, 4, 5, 6};
  std::string file = npy("<i8", "(2, 3)", values.data(), 48);
  auto array = parseNpy(span(file), nullptr);
  ASSERT_TRUE(array) << array.status().str();
  EXPECT_EQ(array->dtype, plan::I64);
  EXPECT_EQ(array->dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(array->bytes.size(), 48u);
  EXPECT_TRUE(parseNpy(span(npy("<f4", "()", values.data(), 4)), nullptr));
  EXPECT_TRUE(parseNpy(span(npy("|b1", "(3,)", values.data(), 3)), nullptr));
  EXPECT_TRUE(parseNpy(span(npy("<f4", "(0, 5)", values.data(), 0)), nullptr));
}

TEST(Npy, RefusesWhatIsHostile) {
  int64_t values[8] = {};
  for (const char *shape :
       {"(9999999999999,)", "(4294967296, 4294967296)", "(-1,)", "(2,", "2", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)",
        "(0x10,)", "(9223372036854775807, 2)", "(99999999999999999999,)", "(1 2)", "('a',)"})
    EXPECT_FALSE(parseNpy(span(npy("<f8", shape, values, 64)), nullptr)) << shape;
  for (const char *descr : {">f8", "<f16", "|O", "<U4", "<c8", "f4", ""})
    EXPECT_FALSE(parseNpy(span(npy(descr, "(2,)", values, 64)), nullptr)) << descr;
  std::string good = npy("<f8", "(8,)", values, 64);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(parseNpy(span(good.substr(0, size)), nullptr)) << size;
  std::string fortran = good;
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_TRUE(parseNpy(span(fortran), nullptr)) << "one dimension has one order";
  std::mt19937 generator(3);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = good;
    for (int i = 0; i < 3; ++i)
      damaged[generator() % damaged.size()] = static_cast<char>(generator());
    (void)parseNpy(span(damaged), nullptr); // no crash, no read outside
  }
}

TEST(Npz, ReadsStoredAndDeflated) {
  std::string x = samplesNpy(100);
  for (bool deflated : {false, true}) {
    std::string file = zip({{"x.npy", x}, {"notes.txt", "ignored"}}, deflated);
    auto arrays = parseNpz(span(file), nullptr);
    ASSERT_TRUE(arrays) << arrays.status().str();
    ASSERT_EQ(arrays->size(), 1u);
    EXPECT_EQ((*arrays)[0].name, "x");
    EXPECT_EQ((*arrays)[0].array.dims, (std::vector<int64_t>{100, 8}));
    float last;
    std::memcpy(&last, (*arrays)[0].array.bytes.data() + 799 * 4, 4);
    EXPECT_EQ(last, 799.0f);
  }
}

TEST(Npz, RefusesWhatIsHostile) {
  std::string x = samplesNpy(100);
  for (bool deflated : {false, true}) {
    std::string good = zip({{"x.npy", x}}, deflated);
    for (size_t size = 0; size < good.size(); size += 3)
      EXPECT_FALSE(parseNpz(span(good.substr(0, size)), nullptr)) << size;
    std::string wrongSum = good;
    wrongSum[40] ^= 1; // inside the member
    EXPECT_FALSE(parseNpz(span(wrongSum), nullptr));
    std::mt19937 generator(5);
    for (int round = 0; round < 5000; ++round) {
      std::string damaged = good;
      for (int i = 0; i < 4; ++i)
        damaged[damaged.size() - 1 - generator() % 120] = static_cast<char>(generator());
      (void)parseNpz(span(damaged), nullptr);
    }
  }
  EXPECT_FALSE(parseNpz(span(zip({{"x.npy", x}, {"x.npy", x}}, false)), nullptr));
  // What is no array, however few bytes it deflates to.
  std::string bomb = zip({{"x.npy", std::string(64 << 20, '\0')}}, true);
  EXPECT_FALSE(parseNpz(span(bomb), nullptr));
}

TEST(Idx, ReadsImagesAndLabels) {
  std::string file("\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x04", 16);
  EXPECT_FALSE(parseIdx(span(file), nullptr));
  file.append(24, '\x7f');
  auto images = parseIdx(span(file), nullptr);
  ASSERT_TRUE(images) << images.status().str();
  EXPECT_EQ(images->dims, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_TRUE(images->imageBytes);
  std::string huge("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  EXPECT_FALSE(parseIdx(span(huge), nullptr));
  EXPECT_FALSE(parseIdx(span(std::string("\0\0\x0d\x01\0\0\0\x01", 8) + "abcd"), nullptr));
}

TEST(TokenShard, ReadsBothWidths) {
  std::vector<int32_t> header(256);
  header[0] = 20240520, header[1] = 1, header[2] = 5;
  std::string file = raw(header) + raw(std::vector<uint16_t>{1, 2, 3, 4, 50256});
  auto shard = parseTokenShard(span(file), nullptr);
  ASSERT_TRUE(shard) << shard.status().str();
  EXPECT_EQ(shard->dtype, plan::U16);
  EXPECT_FALSE(parseTokenShard(span(file + "x"), nullptr));
  EXPECT_FALSE(parseTokenShard(span(file.substr(0, 1000)), nullptr));
  header[2] = -1;
  EXPECT_FALSE(parseTokenShard(span(raw(header)), nullptr));
  header[0] = 20240801, header[1] = 7, header[2] = 1;
  EXPECT_TRUE(parseTokenShard(span(raw(header) + raw(std::vector<uint32_t>{128000})), nullptr));
  header[1] = 8;
  EXPECT_FALSE(parseTokenShard(span(raw(header)), nullptr));
}

class Feeding : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = Session::load(writeRegression(testing::TempDir() + "feed.tide", regressionPlan()));
    ASSERT_TRUE(loaded);
    session = std::move(*loaded);
    ASSERT_TRUE(session->bind({.threads = 1}).isOk());
  }
  Expected<Feeder> feeder(const std::string &spec, std::optional<uint64_t> shuffle = {},
                          const std::string &scales = {}) {
    auto dataset = Dataset::open(spec, scales);
    if (!dataset)
      return dataset.takeStatus();
    notes.clear();
    return Feeder::create(*dataset, *session, "train", shuffle, notes);
  }
  float x(int64_t sample, int64_t column) {
    return static_cast<float>(
        loadElement(plan::F32, session->tensor("train", "x")->data + (sample * width + column) * 4));
  }
  std::string write(const std::string &name, const std::string &content) {
    writeText(testing::TempDir() + name, content);
    return testing::TempDir() + name;
  }
  std::string labels(int64_t rows) {
    std::vector<float> y(static_cast<size_t>(rows), 1);
    return npy("<f4", "(" + std::to_string(rows) + ", 1)", y.data(), y.size() * 4);
  }

  std::unique_ptr<Session> session;
  std::vector<std::string> notes;
};

TEST_F(Feeding, GoesThroughTheRowsInOrder) {
  std::string path =
      write("data.npz", zip({{"x.npy", samplesNpy(50)}, {"y.npy", labels(50)}, {"z.npy", labels(2)}}, true));
  auto feed = feeder(path);
  ASSERT_TRUE(feed) << feed.status().str();
  EXPECT_EQ(feed->stepsPerEpoch(), 3); // two rows are left out
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("'z' is not read"), std::string::npos);
  for (int64_t step : {0, 1, 2, 3, 7}) {
    ASSERT_TRUE(feed->feed(step).isOk());
    EXPECT_EQ(x(0, 0), static_cast<float>(step % 3 * samples * width));
    EXPECT_EQ(x(15, 7), static_cast<float>(((step % 3) * samples + 15) * width + 7));
  }
}

TEST_F(Feeding, ShufflesEachEpochAnewAndWholly) {
  std::string path = write("data.npz", zip({{"x.npy", samplesNpy(48)}, {"y.npy", labels(48)}}, false));
  auto feed = feeder(path, 7), again = feeder(path, 7);
  ASSERT_TRUE(feed && again);
  std::vector<std::vector<float>> epochs;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::set<float> rows;
    std::vector<float> order;
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(feed->feed(epoch * 3 + step).isOk());
      for (int64_t i = 0; i < samples; ++i)
        rows.insert(x(i, 0)), order.push_back(x(i, 0));
    }
    EXPECT_EQ(rows.size(), 48u);
    epochs.push_back(order);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  ASSERT_TRUE(again->feed(0).isOk());
  EXPECT_EQ(x(0, 0), epochs[0][0]);
}

TEST_F(Feeding, SaysWhatDoesNotFit) {
  auto expect = [&](const std::string &spec, const std::string &words) {
    auto feed = feeder(spec);
    ASSERT_FALSE(feed) << words;
    EXPECT_NE(feed.status().str().find(words), std::string::npos) << feed.status().str();
  };
  std::string x = write("x.npy", samplesNpy(32)), y = write("y.npy", labels(32));
  EXPECT_TRUE(feeder(x + "," + y)) << feeder(x + "," + y).status().str();
  expect(x, "no array 'y', which the model reads as float32[16, 1]; they have: x float32[32, 8]");
  expect("x=" + y + ",y=" + y, "array 'x': is float32[32, 1], the model reads float32[16, 8]");
  expect(x + ",y=" + write("small.npy", labels(15)), "15 samples");
  std::vector<int64_t> whole(32);
  std::vector<float> broken(32 * 8);
  EXPECT_TRUE(feeder(x + ",y=" + write("whole.npy", npy("<i8", "(32, 1)", whole.data(), whole.size() * 8))));
  expect(x + "," + x, "twice");
  expect(x + ",x=" + write("other.npy", npy("<f4", "(64, 4)", broken.data(), 32 * 8 * 4)) + "," + y,
         "other.npy: array 'x': is float32[64, 4], in " + x + " float32[32, 8]; files that are one data set agree");
  expect("/no/such/file.npz", "cannot open");
  expect(write("text.npz", "hello, this is no archive"), "none of");
  expect("synthetic:x", "seed");
  expect("synthetic," + x, "mixed");
  expect(testing::TempDir() + "none*.bin", "no file matches");
  expect(write("tokens.bin", raw([] {
                 std::vector<int32_t> header(256);
                 header[0] = 20240520, header[1] = 1;
                 return header;
               }())),
         "token shards feed");
  EXPECT_TRUE(feeder("synthetic:3"));
}

TEST_F(Feeding, TakesSeveralFilesAsOneSet) {
  // 50 rows in files of 7, 20 and 23: batches lie across their borders, with and without shuffling.
  std::string all = samplesNpy(50);
  auto rows = [&](const std::string &name, int64_t first, int64_t count) {
    std::string head = all.substr(0, all.size() - 50 * 8 * 4), values = all.substr(all.size() - 50 * 8 * 4);
    std::vector<float> part(static_cast<size_t>(count * width));
    std::memcpy(part.data(), values.data() + first * width * 4, part.size() * 4);
    return write(name, zip({{"x.npy", npy("<f4", "(" + std::to_string(count) + ", 8)", part.data(), part.size() * 4)},
                            {"y.npy", labels(count)}},
                           name.back() == 'z' && count == 20));
  };
  rows("set-1.npz", 0, 7), rows("set-2.npz", 7, 20), rows("set-3.npz", 27, 23);
  std::string one = write("whole.npz", zip({{"x.npy", all}, {"y.npy", labels(50)}}, false));
  for (std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(3)}) {
    auto whole = feeder(one, seed), parts = feeder(testing::TempDir() + "set-*.npz", seed);
    ASSERT_TRUE(whole && parts) << parts.status().str();
    EXPECT_EQ(parts->rows(), 50);
    for (int64_t step = 0; step < 6; ++step) {
      ASSERT_TRUE(whole->feed(step).isOk());
      std::vector<float> expected;
      for (int64_t i = 0; i < samples; ++i)
        expected.push_back(x(i, 3));
      ASSERT_TRUE(parts->feed(step).isOk());
      for (int64_t i = 0; i < samples; ++i)
        EXPECT_EQ(x(i, 3), expected[static_cast<size_t>(i)]) << step;
    }
  }
  auto again = feeder(testing::TempDir() + "set-*.npz");
  ASSERT_TRUE(again && again->feedAgain(45, 4).isOk());
  for (int64_t i = 0; i < samples; ++i)
    EXPECT_EQ(x(i, 0), static_cast<float>((45 + i % 4) * width));
}

TEST_F(Feeding, ConvertsWithAFactor) {
  std::vector<uint8_t> bytes(32 * 8);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(i);
  std::string y = "," + write("y.npy", labels(32));
  std::string u8 = "x=" + write("bytes.npy", npy("|u1", "(32, 8)", bytes.data(), bytes.size())) + y;
  auto plain = feeder(u8), scaled = feeder(u8, {}, "x:1/255");
  ASSERT_TRUE(plain && scaled) << scaled.status().str();
  EXPECT_EQ(notes, (std::vector<std::string>{"array 'x' is converted from uint8 to float32 (times 1/255)"}));
  for (int64_t step : {0, 1}) {
    ASSERT_TRUE(plain->feed(step).isOk());
    EXPECT_EQ(x(15, 7), static_cast<float>(step * 128 + 127));
    ASSERT_TRUE(scaled->feed(step).isOk());
    for (int64_t i = 0; i < 128; ++i)
      EXPECT_EQ(x(i / 8, i % 8), static_cast<float>(step * 128 + i) / 255.0f); // as numpy and torch divide
  }
  for (const char *wrong : {"x", "x:", "x:a", "x:1/0", "x:1/2/3", ":2", "x:1,x:2", "x:0"})
    EXPECT_EQ(feeder(u8, {}, wrong).status().code(), StatusCode::Usage) << wrong;
  EXPECT_NE(feeder(u8, {}, "z:2").status().str().find("--scale names 'z', which is no array that entry 'train' reads"),
            std::string::npos);
  std::vector<double> wide(32 * 8, 0.1);
  wide[8 * 17 + 3] = 1e300;
  auto rounded = feeder("x=" + write("wide.npy", npy("<f8", "(32, 8)", wide.data(), wide.size() * 8)) + y);
  ASSERT_TRUE(rounded) << rounded.status().str();
  EXPECT_TRUE(rounded->feed(0).isOk());
  EXPECT_EQ(x(0, 0), 0.1f);
  Status misfit = rounded->feed(1);
  EXPECT_NE(misfit.str().find("wide.npy: array 'x': value 1e+300 in row 17 is no float32 that the model could read"),
            std::string::npos)
      << misfit.str();
}

TEST(Conversion, TakesWhatFits) {
  auto convert = [](plan::DType from, plan::DType to, auto value, auto expected) {
    auto conversion = Conversion::create(from, to);
    ASSERT_TRUE(conversion) << conversion.status().str();
    decltype(expected) result{};
    ASSERT_EQ(conversion->convert(reinterpret_cast<const uint8_t *>(&value), reinterpret_cast<uint8_t *>(&result), 1),
              1)
        << describe(from) << " to " << describe(to);
    EXPECT_EQ(result, expected) << describe(from) << " to " << describe(to);
  };
  auto refuses = [](plan::DType from, plan::DType to, auto value) {
    auto conversion = Conversion::create(from, to);
    uint8_t result[8];
    return conversion && conversion->convert(reinterpret_cast<const uint8_t *>(&value), result, 1) == 0;
  };
  convert(plan::I32, plan::I64, int32_t(-7), int64_t(-7));
  convert(plan::U64, plan::I64, uint64_t(1) << 62, int64_t(1) << 62);
  convert(plan::U16, plan::I32, uint16_t(65535), int32_t(65535));
  convert(plan::I8, plan::F32, int8_t(-128), -128.0f);
  convert(plan::U16, plan::F64, uint16_t(50256), 50256.0);
  convert(plan::F16, plan::F32, uint16_t(0x3555), 0.333251953125f); // a third in half precision
  convert(plan::BF16, plan::F32, uint16_t(0x3eab), 0.333984375f);
  convert(plan::F64, plan::F16, 65504.0, uint16_t(0x7bff));
  convert(plan::F32, plan::BF16, 1.00390625f, uint16_t(0x3f80)); // a tie, to even
  convert(plan::I64, plan::BOOL, int64_t(1), uint8_t(1));
  convert(plan::BOOL, plan::F32, uint8_t(1), 1.0f);
  EXPECT_TRUE(refuses(plan::I64, plan::I32, int64_t(1) << 31));
  EXPECT_TRUE(refuses(plan::I8, plan::U8, int8_t(-1)));
  EXPECT_TRUE(refuses(plan::U64, plan::I64, ~uint64_t(0)));
  EXPECT_TRUE(refuses(plan::U8, plan::BOOL, uint8_t(2)));
  EXPECT_TRUE(refuses(plan::F64, plan::F16, 70000.0));
  EXPECT_FALSE(Conversion::create(plan::F32, plan::I64));
  EXPECT_NE(Conversion::create(plan::F64, plan::I64).status().str().find(".astype('int64')"), std::string::npos);
  EXPECT_FALSE(Conversion::create(plan::I32, plan::I64, {1, 2}));
  float infinite = INFINITY, result = 0; // stays what it is
  EXPECT_EQ(Conversion::create(plan::F32, plan::F16)
                ->convert(reinterpret_cast<const uint8_t *>(&infinite), reinterpret_cast<uint8_t *>(&result), 1),
            1);
}

TEST(Npz, InflatesOnlyWhatMemoryIsFreeFor) {
  std::string file = zip({{"x.npy", samplesNpy(100)}}, true), stored = zip({{"x.npy", samplesNpy(100)}}, false);
  uint64_t enough = 1 << 20, little = 1000;
  EXPECT_TRUE(parseNpz(span(file), nullptr, &enough));
  EXPECT_LT(enough, uint64_t(1 << 20) - 3200);
  auto refused = parseNpz(span(file), nullptr, &little);
  EXPECT_EQ(refused.status().code(), StatusCode::OverBudget);
  EXPECT_NE(refused.status().str().find("save it with numpy.savez"), std::string::npos) << refused.status().str();
  EXPECT_TRUE(parseNpz(span(stored), nullptr, &little)) << "is read where it lies";
  EXPECT_GT(freeMemory(), uint64_t(1) << 20);
}

TEST(TokenShard, ReadsRawTokens) {
  std::string path = testing::TempDir() + "raw";
  auto shard = [&](const std::string &end, const std::string &content) {
    writeText(path + end, content);
    return Dataset::open(path + end);
  };
  std::vector<uint32_t> wide = {1, 128000, 3};
  std::vector<uint16_t> narrow = {0, 50256, 3};
  auto u32 = shard(".u32", raw(wide)), bin = shard(".bin", raw(narrow)), u16 = shard(".u16", raw(narrow));
  ASSERT_TRUE(u32 && bin && u16);
  EXPECT_EQ(u32->shards[0].array.dtype, plan::U32);
  EXPECT_EQ(u32->shards[0].array.dims, (std::vector<int64_t>{3}));
  for (const Dataset *set : {&*bin, &*u16})
    EXPECT_EQ(set->shards[0].array.dtype, plan::U16);
  EXPECT_NE(shard(".u32", "12345").status().str().find("5 bytes are no whole number of uint32 tokens"),
            std::string::npos);
  EXPECT_NE(shard(".tok", raw(wide)).status().str().find("raw tokens end in .bin or .u16"), std::string::npos);
}

TEST(Permutation, IsOne) {
  for (uint64_t count : {1, 2, 3, 7, 16, 100, 1000, 4097})
    for (uint64_t seed : {0, 1}) {
      std::set<uint64_t> seen;
      for (uint64_t i = 0; i < count; ++i) {
        uint64_t value = permuted(i, count, seed);
        ASSERT_LT(value, count);
        seen.insert(value);
      }
      EXPECT_EQ(seen.size(), count);
    }
}

TEST(Json, RefusesDepth) {
  EXPECT_TRUE(parseJson("{\"a\": [1, \"[[[[\"]}"));
  EXPECT_FALSE(parseJson(std::string(100000, '[')));
  EXPECT_FALSE(parseJson("{"));
}

TEST(Safetensors, RoundTripsAndRefusesLies) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  std::string path = testing::TempDir() + "t.safetensors";
  auto entry = [&](const char *name, std::vector<int64_t> dims, size_t count) {
    return SafetensorsEntry{name, plan::F32, dims, count * 4, [&values, count](const SafetensorsEntry::Sink &sink) {
                              return sink(values.data(), count * 4);
                            }};
  };
  ASSERT_TRUE(writeSafetensors(path, {entry("b", {2, 3}, 6), entry("a", {}, 1)}, {{"format", "pt"}}).isOk());
  EXPECT_FALSE(writeSafetensors(path + "2", {entry("b", {6}, 6), entry("b", {6}, 6)}).isOk());
  std::string good = readFile(path);
  auto arrays = parseSafetensors(span(good), nullptr);
  ASSERT_TRUE(arrays) << arrays.status().str();
  EXPECT_EQ(arrays->size(), 2u);
  auto file = [](const std::string &header, size_t data) {
    std::string text;
    put(text, header.size(), 8);
    return text + header + std::string(data, 'x');
  };
  EXPECT_TRUE(parseSafetensors(span(file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4)), nullptr));
  for (const char *header :
       {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,5]}})",
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})",
        R"({"a":{"dtype":"U9","shape":[4],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})",
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
        R"({"a":{"dtype":"U8","shape":[4.5],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", R"({"a":5})", R"([])", R"({"a":{"dtype":"U8"}})"})
    EXPECT_FALSE(parseSafetensors(span(file(header, 4)), nullptr)) << header;
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(parseSafetensors(span(good.substr(0, size)), nullptr)) << size;
  std::mt19937 generator(9);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = good;
    for (int i = 0; i < 2; ++i)
      damaged[generator() % damaged.size()] = static_cast<char>(generator());
    (void)parseSafetensors(span(damaged), nullptr);
  }
}

TEST(Schedule, WarmsUpAndDecays) {
  plan::Schedule schedule;
  schedule.set_lr(1);
  EXPECT_EQ(learningRate(schedule, 1000), 1.0);
  schedule.set_warmup_steps(4);
  EXPECT_EQ(learningRate(schedule, 0), 0.25);
  EXPECT_EQ(learningRate(schedule, 3), 1.0);
  schedule.set_total_steps(14);
  schedule.set_min_lr(0.2);
  schedule.set_kind(plan::Schedule::LINEAR);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 9), 0.6);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 99), 0.2);
  schedule.set_kind(plan::Schedule::COSINE);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 4), 1.0);
  EXPECT_NEAR(learningRate(schedule, 9), 0.6, 1e-12);
  EXPECT_DOUBLE_EQ(learningRate(schedule, 14), 0.2);
}

} // namespace
