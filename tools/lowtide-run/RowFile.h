//===- RowFile.h - arrays that are written row by row ----------------------===//
//
// Several arrays of known shapes in one file, .npz or .safetensors, whose rows come in pieces: all arrays grow
// together.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_TOOLS_LOWTIDE_RUN_ROWFILE_H
#define LOWTIDE_TOOLS_LOWTIDE_RUN_ROWFILE_H

#include "plan.pb.h"
#include "runtime/Status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lowtide::run {

class RowFile {
public:
  enum class Format { Npz, Safetensors };
  /// By the end of the name; Usage for any other.
  static rt::Expected<Format> formatOf(const std::string &path);

  struct Array {
    std::string name;
    plan::DType dtype = plan::DTYPE_UNSPECIFIED; ///< of NumPy's for .npz: no bf16
    std::vector<int64_t> dims;
    uint64_t bytes() const;
  };
  /// Makes `<path>.partial` and takes the bytes that it needs from the disk, or says that they are not there.
  static rt::Expected<std::unique_ptr<RowFile>> create(const std::string &path, std::vector<Array> arrays);
  /// Removes what is not whole.
  ~RowFile();

  /// The next bytes of an array.
  rt::Status append(size_t array, const void *data, uint64_t bytes);
  /// Everything is there: writes what depends on it, syncs, and gives the file its name.
  rt::Status finish();

private:
  struct Place {
    uint64_t header = 0, data = 0, written = 0; ///< offsets in the file; bytes so far
    std::string prefix;                         ///< what stands before the values in a member of an archive
    uint32_t crc = 0;
  };

  RowFile(std::string path, int file, Format format, std::vector<Array> arrays)
      : path_(std::move(path)), file_(file), format_(format), arrays_(std::move(arrays)), places_(arrays_.size()) {}
  std::string partial() const { return path_ + ".partial"; }
  rt::Status layOut();
  rt::Status write(uint64_t offset, const void *data, uint64_t bytes);
  std::string memberHeader(size_t array, bool inDirectory) const;
  std::string directory() const;

  std::string path_;
  int file_;
  Format format_;
  std::vector<Array> arrays_;
  std::vector<Place> places_;
  uint64_t end_ = 0; ///< of the last array
};

} // namespace lowtide::run

#endif // LOWTIDE_TOOLS_LOWTIDE_RUN_ROWFILE_H
