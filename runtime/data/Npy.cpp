//===- Npy.cpp - arrays in NumPy's own format ------------------------------===//
//
// A magic, a version, a header length, a Python dictionary literal with exactly three keys, the values. The literal is
// read by a small scanner that knows strings, booleans and tuples of integers, and nothing else of Python.
//
//===----------------------------------------------------------------------===//

#include "runtime/CheckedMath.h"
#include "runtime/Verify.h"
#include "runtime/data/Conversion.h"
#include "runtime/data/HostArray.h"

#include <charconv>
#include <cstring>

namespace lowtide::rt {
namespace {

constexpr size_t maxHeader = 64 * 1024, maxRank = 16;

class HeaderScanner {
public:
  explicit HeaderScanner(std::string_view text) : rest_(text) {}

  bool eat(char c) {
    skipSpace();
    if (rest_.empty() || rest_[0] != c)
      return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view expected) {
    skipSpace();
    if (rest_.substr(0, expected.size()) != expected)
      return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  bool string(std::string &value) {
    skipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"'))
      return false;
    size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos)
      return false;
    value = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool tuple(std::vector<int64_t> &values) {
    if (!eat('('))
      return false;
    while (!eat(')')) {
      skipSpace();
      int64_t value = 0;
      auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc() || value < 0 || values.size() > maxRank)
        return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      (void)eat('L'); // Python 2 wrote long integers
      values.push_back(value);
      if (!eat(',') && (rest_.empty() || rest_[0] != ')'))
        return false;
    }
    return true;
  }
  bool atEnd() {
    skipSpace();
    return rest_.empty();
  }

private:
  void skipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

plan::DType dtypeFromDescr(std::string_view descr) {
  static constexpr struct {
    const char *descr;
    plan::DType dtype;
  } table[] = {{"<f8", plan::F64}, {"<f4", plan::F32}, {"<f2", plan::F16}, {"<i8", plan::I64},
               {"<i4", plan::I32}, {"<i2", plan::I16}, {"|i1", plan::I8},  {"|u1", plan::U8},
               {"<u2", plan::U16}, {"<u4", plan::U32}, {"<u8", plan::U64}, {"|b1", plan::BOOL}};
  for (const auto &entry : table)
    if (descr == entry.descr)
      return entry.dtype;
  return plan::DTYPE_UNSPECIFIED;
}

} // namespace

std::string describe(plan::DType dtype) {
  static const char *names[] = {"?",     "float64", "float32", "float16", "bfloat16", "int64",  "int32",
                                "int16", "int8",    "uint8",   "bool",    "uint16",   "uint32", "uint64"};
  size_t index = static_cast<size_t>(dtype);
  return index < std::size(names) ? names[index] : "?";
}

std::string describe(plan::DType dtype, std::span<const int64_t> dims) {
  std::string text = describe(dtype) + "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

Expected<size_t> npyHeaderSize(std::span<const uint8_t> prefix) {
  if (prefix.size() < 10 || std::memcmp(prefix.data(), "\x93NUMPY", 6) != 0)
    return badInput("not a .npy array: it does not start with \\x93NUMPY");
  unsigned version = prefix[6];
  size_t lengthBytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3)
    return badInput(".npy version " + std::to_string(version) + "; 1 to 3 are known");
  if (prefix.size() < 8 + lengthBytes)
    return badInput("truncated inside the .npy header");
  size_t length = 0;
  for (size_t i = lengthBytes; i-- > 0;)
    length = length << 8 | prefix[8 + i];
  if (length > maxHeader)
    return badInput(".npy header of " + std::to_string(length) + " bytes is too long or truncated");
  return 8 + lengthBytes + length;
}

Expected<NpyHeader> parseNpyHeader(std::span<const uint8_t> file) {
  Expected<size_t> size = npyHeaderSize(file);
  if (!size)
    return size.takeStatus();
  const size_t start = file[6] == 1 ? 10 : 12, length = *size - start;
  if (*size > file.size())
    return badInput(".npy header of " + std::to_string(length) + " bytes is too long or truncated");

  HeaderScanner scanner({reinterpret_cast<const char *>(file.data()) + start, length});
  NpyHeader header;
  std::string key, descr;
  bool seenDescr = false, seenOrder = false, seenShape = false, fortran = false;
  bool good = scanner.eat('{');
  while (good && !scanner.eat('}')) {
    good = scanner.string(key) && scanner.eat(':');
    if (good && key == "descr" && !seenDescr)
      seenDescr = true, good = scanner.string(descr);
    else if (good && key == "fortran_order" && !seenOrder)
      seenOrder = true, fortran = scanner.word("True"), good = fortran || scanner.word("False");
    else if (good && key == "shape" && !seenShape)
      seenShape = true, good = scanner.tuple(header.dims);
    else
      good = false;
    (void)scanner.eat(',');
  }
  if (!good || !seenDescr || !seenOrder || !seenShape || !scanner.atEnd())
    return badInput("the .npy header is not {'descr': …, 'fortran_order': …, 'shape': …}");
  if (header.dims.size() > maxRank)
    return badInput("rank " + std::to_string(header.dims.size()) + "; at most 16 is accepted");
  header.dtype = dtypeFromDescr(descr);
  if (header.dtype == plan::DTYPE_UNSPECIFIED)
    return badInput("element type '" + printable(descr) + "'; little-endian numbers and booleans are accepted: " +
                    (descr.find_first_of("USTO") != std::string::npos
                         ? "classes in words are numbered by numpy.unique(labels, return_inverse=True)[1]"
                         : "save it with .astype('float32') or .astype('int64')"));
  if (fortran && header.dims.size() > 1)
    return badInput("the array is stored by columns: save it with numpy.ascontiguousarray");
  Checked bytes = elementBytes(header.dtype);
  for (int64_t dim : header.dims)
    bytes *= Checked::fromSigned(dim);
  if (!bytes.get())
    return badInput(describe(header.dtype, header.dims) + " has more bytes than a machine can hold");
  header.size = *size;
  header.bytes = *bytes.get();
  return header;
}

Expected<HostArray> parseNpy(std::span<const uint8_t> file, std::shared_ptr<const void> owner) {
  Expected<NpyHeader> header = parseNpyHeader(file);
  if (!header)
    return header.takeStatus();
  if (header->bytes > file.size() - header->size)
    return badInput("truncated: " + describe(header->dtype, header->dims) + " needs more bytes than the " +
                    std::to_string(file.size() - header->size) + " that follow the header");
  HostArray array;
  array.dtype = header->dtype;
  array.dims = std::move(header->dims);
  array.bytes = file.subspan(header->size, header->bytes);
  array.owner = std::move(owner);
  return array;
}

} // namespace lowtide::rt
