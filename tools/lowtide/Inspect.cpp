//===- Inspect.cpp - commands that look at artifacts and at the machine -*- C++ -*-===//
//
// `lowtide verify`, `lowtide report` and `lowtide doctor`.
//
//===----------------------------------------------------------------------===//

#include "Inspect.h"
#include "Diagnostics.h"
#include "lowtide/Codegen/Toolkit.h"
#include "lowtide/Report/Report.h"
#include "runtime/Artifact.h"
#include "runtime/Machines.h"
#include "runtime/MemorySpaces.h"
#include "runtime/Verify.h"
#include "runtime/devices/Cuda/Survey.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include <google/protobuf/stubs/common.h>
#include <thread>

using namespace lowtide;
using llvm::StringRef;

/// "640 bytes", "3145728 bytes (3.00 MiB)": exact first, since that is what is proved.
static std::string sizeText(uint64_t bytes) {
  std::string text = std::to_string(bytes) + " bytes";
  if (bytes >= 1 << 20) {
    llvm::raw_string_ostream os(text);
    os << " (" << llvm::format("%.2f MiB", bytes / 1048576.0) << ")";
  }
  return text;
}

int driver::fail(const rt::Status &status) {
  printError(status.message() + (status.where().empty() ? "" : " (at '" + status.where() + "')"));
  return static_cast<int>(status.code());
}

std::string driver::describeVersion() {
  return LOWTIDE_VERSION ", plan format " + std::to_string(rt::planFormatVersion);
}

int driver::drawReport(const Options &options) {
  std::string output = options.output, format = options.format;
  if (format.empty()) {
    const StringRef extension = llvm::sys::path::extension(output);
    format = llvm::StringSwitch<const char *>(extension)
                 .Cases({"", ".html", ".htm"}, "html")
                 .Case(".json", "json")
                 .Case(".svg", "svg")
                 .Case(".pickle", "torch-snapshot")
                 .Default("");
    if (format.empty()) {
      printError("a report has no format for '" + extension.str() + "'");
      printNote("it has .html, .svg, .json and .pickle; --format=html writes HTML into a file of any name");
      return exitUsage;
    }
  }
  if (output.empty())
    output = StringRef(options.input).rsplit('.').first.str() + (format == "chrome-trace"     ? ".trace.json"
                                                                 : format == "torch-snapshot" ? ".pickle"
                                                                                              : "." + format);
  rt::Status status = report::writeReport(options.input, output, format, options.run);
  if (!status.isOk())
    return fail(status);
  if (output != "-")
    llvm::errs() << "wrote " << output << "\n";
  return exitOk;
}

int driver::verifyArtifact(const Options &options) {
  if (StringRef(options.input).ends_with(".onnx")) {
    printError("'" + options.input + "' is a model: what should its training step be compared with?");
    printNote("--against=module.py:make, or --against=record.npz; 'lowtide verify --help' says more");
    return exitUsage;
  }
  auto artifact = rt::Artifact::open(options.input);
  if (!artifact)
    return fail(artifact.status());
  const plan::Plan &plan = (*artifact)->plan();
  rt::VerifyReport report;
  rt::Status status = rt::verifyPlan(plan, &report);
  if (!status.isOk())
    return fail(status);
  uint64_t transientBytes = 0;
  for (const plan::Arena &arena : plan.arenas()) {
    llvm::outs() << "arena " << arena.name() << "  " << sizeText(arena.bytes());
    if (arena.space() != plan::Arena::DEVICE)
      llvm::outs() << " in space " << rt::showSpace(arena.space());
    llvm::outs() << "\n";
    if (rt::isDeviceTransient(arena))
      transientBytes += arena.bytes();
  }
  for (auto [entry, facts] : llvm::zip(plan.entries(), report.entries))
    llvm::outs() << "entry " << entry.name() << "  " << facts.instructions << " instructions  live bytes at the peak "
                 << sizeText(facts.peakLiveBytes) << "  arena / live "
                 << llvm::format("%.4f", facts.peakLiveBytes ? double(transientBytes) / facts.peakLiveBytes : 1.0)
                 << "\n";
  if (const std::string machines = rt::describeMachines(plan.target()); !machines.empty())
    llvm::outs() << "runs on " << machines << "\n";
  llvm::outs() << "proved: bounds, value numbers, order of streams, final values\n";
  return exitOk;
}

int driver::describeMachine() {
  llvm::outs() << "lowtide   " << describeVersion() << "\n"
               << "llvm      " << LLVM_VERSION_STRING << "\n"
               << "protobuf  " << google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION) << "\n"
               << "processor " << llvm::sys::getHostCPUName() << ", " << std::thread::hardware_concurrency()
               << " threads\n";
  llvm::outs() << "vectors   ";
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  bool v3 = features.lookup("avx2") && features.lookup("fma") && features.lookup("bmi2");
  bool v4 = v3 && features.lookup("avx512f") && features.lookup("avx512vl") && features.lookup("avx512bw");
  llvm::outs() << (v4   ? "x86-64-v4"
                   : v3 ? "x86-64-v3"
                        : "below x86-64-v3: compiles here, but steps run on a machine with AVX2 and FMA")
               << "\n";
  for (const rt::cuda::Finding &finding : rt::cuda::surveyCuda())
    llvm::outs() << llvm::left_justify(finding.what, 10) << finding.text << "\n";
  auto tell = [](llvm::StringRef tool, std::optional<std::string> path, llvm::StringRef without) {
    llvm::outs() << llvm::left_justify(tool, 10) << (path ? *path : ("not found; " + without).str()) << "\n";
  };
  auto linker = llvm::sys::findProgramByName("ld.lld-22");
  tell("ld.lld-22", linker ? std::optional(*linker) : std::nullopt, "needed to link kernels: install lld-22");
  tell("ptxas", codegen::findInToolkit("bin/ptxas"),
       "artifacts for cuda carry PTX only, which the driver compiles at every load; tools/dev setup brings it");
  return exitOk;
}
