//===- StatementMarks.h - where machine code speaks of itself --------------===//
//
// Compiler and runtime both include this header, which includes nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_RUNTIME_STATEMENTMARKS_H
#define LOWTIDE_RUNTIME_STATEMENTMARKS_H

namespace lowtide::rt {

/// Section of a host's ELF object that holds the lines, one for each launch that a kernel may serve.
inline constexpr char statementSection[] = ".lowtide.kernels";
/// In PTX each line stands in a comment after this mark, and the same text follows a cubin's last byte: what is not in
/// an ELF file's tables is nothing to the driver.
inline constexpr char statementMark[] = "// lowtide kernel ";

} // namespace lowtide::rt

#endif // LOWTIDE_RUNTIME_STATEMENTMARKS_H
