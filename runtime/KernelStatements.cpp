//===- KernelStatements.cpp - what machine code says of itself -------------===//

#include "runtime/KernelStatements.h"

#include "runtime/CheckedMath.h"
#include "runtime/Verify.h"

#include <cstring>
#include <elf.h>
#include <string_view>
#include <unordered_set>

namespace lowtide::rt {
namespace {

/// The bytes of a section of an ELF file; none where it has no such section, or is no such file.
std::string_view findSection(std::span<const uint8_t> object, std::string_view wanted) {
  auto read = [&](uint64_t offset, auto &to) {
    if (!(Checked(offset) + sizeof to).atMost(object.size()))
      return false;
    std::memcpy(&to, object.data() + offset, sizeof to);
    return true;
  };
  Elf64_Ehdr header;
  if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return {};
  auto section = [&](uint64_t index, Elf64_Shdr &to) {
    Checked offset = Checked(index) * sizeof(Elf64_Shdr) + header.e_shoff;
    return index < header.e_shnum && offset.get() && read(*offset.get(), to);
  };
  auto bytesOf = [&](const Elf64_Shdr &of) -> std::string_view {
    if (of.sh_type == SHT_NOBITS || !(Checked(of.sh_offset) + of.sh_size).atMost(object.size()))
      return {};
    return {reinterpret_cast<const char *>(object.data()) + of.sh_offset, of.sh_size};
  };
  Elf64_Shdr names, one;
  if (!section(header.e_shstrndx, names))
    return {};
  const std::string_view texts = bytesOf(names);
  for (uint64_t i = 0; i < header.e_shnum && section(i, one); ++i) {
    if (one.sh_name >= texts.size())
      continue;
    const std::string_view rest = texts.substr(one.sh_name);
    if (rest.substr(0, rest.find('\0')) == wanted)
      return bytesOf(one);
  }
  return {};
}

/// The lines of a text; a NUL ends one too.
template <typename Take> void forEachLine(std::string_view text, Take &&take) {
  while (!text.empty()) {
    const size_t end = text.find_first_of(std::string_view("\n\0", 2));
    take(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
}

/// Lines that stand alone, and those that follow a mark.
enum class Form { Lines, Marked };

Status checkLines(const plan::Plan &plan, std::string_view text, Form form) {
  std::unordered_set<std::string_view> stated;
  forEachLine(text, [&](std::string_view line) {
    constexpr std::string_view mark = statementMark;
    if (form == Form::Lines)
      stated.insert(line);
    else if (line.substr(0, mark.size()) == mark)
      stated.insert(line.substr(mark.size()));
  });
  for (const plan::Kernel &kernel : plan.kernels())
    for (const plan::Footprint &footprint : kernel.footprints()) {
      const std::string line = stateKernel(plan, kernel, footprint);
      if (stated.count(line))
        continue;
      std::string_view instead;
      const std::string front = kernel.symbol() + ": ";
      for (std::string_view other : stated)
        if (other.substr(0, front.size()) == front && (instead.empty() || other < instead))
          instead = other;
      return {StatusCode::VerifyFailed, "the plan has '" + printable(line) + "', " +
                                            (instead.empty() ? "and the machine code has no such kernel"
                                                             : "the machine code '" + printable(instead) + "'") +
                                            ": they are not of one compilation; compile the model again"};
    }
  return Status::ok();
}

std::string_view textOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace

/// In ASCII: ptxas and the driver read no other comments.
std::string stateKernel(const plan::Plan &plan, const plan::Kernel &kernel, const plan::Footprint &footprint) {
  std::string line =
      kernel.symbol() + ": " + std::to_string(footprint.extent()) + " by " + std::to_string(footprint.grain()) + ",";
  auto add = [&](const google::protobuf::RepeatedPtrField<plan::Footprint::Tensor> &tensors) {
    for (const plan::Footprint::Tensor &tensor : tensors)
      line += " " + std::to_string(tensor.elements()) + "x" + std::to_string(elementBytes(tensor.dtype()));
  };
  add(footprint.reads());
  line += " to";
  add(footprint.writes());
  line += " bytes";
  const char *separator = ", in place ";
  for (const plan::Footprint::InPlace &pair : footprint.in_place()) {
    line += separator + std::to_string(pair.result()) + " on " + std::to_string(pair.operand());
    separator = " ";
  }
  return line + ", scratch " + std::to_string(kernel.scratch_bytes()) + ", threads " +
         std::to_string(kernel.threads_per_block()) + ", shared " + std::to_string(kernel.shared_bytes()) + ", for " +
         plan.target();
}

std::string stateKernels(const plan::Plan &plan) {
  std::string lines;
  for (const plan::Kernel &kernel : plan.kernels())
    for (const plan::Footprint &footprint : kernel.footprints())
      lines += stateKernel(plan, kernel, footprint) + "\n";
  return lines;
}

Status checkStatements(const plan::Plan &plan, const CodeImages &code) {
  if (!code.object.empty())
    LOWTIDE_TRY(checkLines(plan, findSection(code.object, statementSection), Form::Lines).at("section 'code'"));
  if (!code.cubin.empty())
    LOWTIDE_TRY(checkLines(plan, textOf(code.cubin), Form::Marked).at("section 'cubin'"));
  if (!code.ptx.empty())
    LOWTIDE_TRY(checkLines(plan, textOf(code.ptx), Form::Marked).at("section 'ptx'"));
  return Status::ok();
}

} // namespace lowtide::rt
