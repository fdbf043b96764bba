//===- ReportPicture.h - an entry's memory as SVG ---------------*- C++ -*-===//
//
// Drawn here rather than by a script, so that the file needs none, prints, and opens at once. Marks carry a title
// (hover) and take the keyboard's focus; components differ in hue and in pattern.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "lowtide/Report/Report.h"
#include "llvm/Support/Format.h"

namespace lowtide::report {

/// Of every picture: its width, what stands to the left of a plot, a plot's height, and that of a line of text.
inline constexpr double width = 720, left = 100, plotHeight = 280, line = 18;

/// The style sheet of pictures and `rules`, in light and dark: {fg}, {bg}, {dim}, {line} and {c0} … {c5} are colours.
std::string writeStyle(llvm::StringRef rules);

/// `text` as XML wants it.
std::string escape(llvm::StringRef text);

/// Draws what the report's run recorded, over its steps.
void printRun(const Report &report, llvm::raw_ostream &os);

/// Draws one entry of a report; `number` tells its patterns from those of others in the same file.
class Picture {
public:
  Picture(const Report &report, const Entry &entry, unsigned number, llvm::raw_ostream &os)
      : report(report), entry(entry), number(number), os(os) {}

  /// Bytes over the instructions, with the budget's line. `alone`: the picture is a file of its own and brings its
  /// colours and a legend.
  void waterline(bool alone = false);
  /// The step as it was and as it is, side by side, on one scale of bytes.
  void beforeAfter(bool alone = false);
  /// Instructions over addresses. Returns how many tensors are too many to be drawn.
  size_t addresses();
  /// Bytes in another memory over the instructions.
  void otherMemory(const SpaceBytes &memory);
  /// What computes and what is copied over estimated time, and when nothing computes for copies that are on their way.
  void lanes();

private:
  /// Where on the page instructions 0 … count and bytes 0 … top lie.
  struct Frame {
    double begin, end;
    double count;
    uint64_t top;
    double above; ///< the plot
    double below() const { return above + plotHeight; }
    double x(double instruction) const { return begin + instruction * (end - begin) / std::max(count, 1.0); }
    double y(double bytes) const;
  };

  void open(llvm::StringRef label, double height, bool alone);
  void bytesAxis(const Frame &frame);
  void instructionsAxis(const Frame &frame, size_t last);
  void bands(llvm::ArrayRef<LiveBytes> live, const Frame &frame, llvm::StringRef name);
  void budgetLine(const Frame &frame);
  /// From `y` on.
  void legend(double y);
  void note(double x, double y, llvm::StringRef anchor, const std::string &text);
  /// Transient bytes that the budget leaves; 0 without one.
  uint64_t getAllowance() const;
  auto f(double value) const { return llvm::format("%.1f", value); }

  const Report &report;
  const Entry &entry;
  unsigned number;
  llvm::raw_ostream &os;
};

} // namespace lowtide::report
