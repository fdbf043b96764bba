//===- lowtide-tblgen.cpp - what C++ needs of declared options --*- C++ -*-===//
//
// An option has one record (Support/DeclaredOptions.td). From it come the member that holds its value, its row in the
// table of options, and what hands the value to the passes that read it.
//
//===----------------------------------------------------------------------===//

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/TableGen/Main.h"
#include "llvm/TableGen/Record.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

/// The records of a class in the order in which they are written.
static std::vector<const Record *> inOrder(const RecordKeeper &records, StringRef name) {
  std::vector<const Record *> found(records.getAllDerivedDefinitions(name));
  llvm::sort(found, LessRecordByID());
  return found;
}

static StringRef getMember(const Record &option) { return option.getValueAsString("Member"); }
static StringRef getCppType(const Record &option) { return option.getValueAsDef("Type")->getValueAsString("cppType"); }

/// A text as a literal.
static std::string quote(StringRef text) {
  std::string quoted;
  raw_string_ostream os(quoted);
  os << '"';
  printEscapedString(text, os);
  os << '"';
  return quoted;
}

/// Members, each with the default that is declared; empty: that of its type.
static void emitValues(const RecordKeeper &records, raw_ostream &os) {
  for (const Record *option : inOrder(records, "DeclaredOption")) {
    // Of a member that several options share it is written by hand.
    if (getCppType(*option).empty())
      continue;
    const StringRef initial = option->getValueAsString("Default"), type = getCppType(*option);
    os << "/// `--" << option->getValueAsString("Name") << "`\n" << type << " " << getMember(*option);
    if (type == "std::string")
      os << (initial.empty() ? "" : "{" + quote(initial) + "}");
    else if (type == "std::vector<std::string>")
      os << (initial.empty() ? "" : "{" + join(map_range(split(initial, ','), quote), ", ") + "}");
    else
      os << "{" << initial << "}";
    os << ";\n";
  }
}

/// Rows: name, group, stage, role, member, value of a switch, value where none is given, whether commas part it.
static void emitRows(const RecordKeeper &records, raw_ostream &os) {
  os << "static const DeclaredRow declaredRows[] = {\n";
  for (const Record *option : inOrder(records, "DeclaredOption")) {
    const StringRef member = getMember(*option);
    os << "  {" << quote(option->getValueAsString("Name")) << ", " << quote(option->getValueAsString("Group")) << ", "
       << quote(option->getValueAsString("Stage")) << ", OptionRole::" << option->getValueAsString("Role") << ", "
       << (member.empty() ? "OptionField()" : ("&Request::" + member).str()) << ", "
       << quote(option->getValueAsString("SwitchValue")) << ", " << quote(option->getValueAsString("ImplicitValue"))
       << ", " << (option->getValueAsDef("Type")->getValueAsBit("isSplit") ? "true" : "false") << "},\n";
  }
  os << "};\n";
}

/// For each pass, one that has the values of its flags: `create<Pass>(values)`, and `setFlags` of its options.
static void emitPassFlags(const RecordKeeper &records, raw_ostream &os) {
  for (const Record *pass : inOrder(records, "PassBase")) {
    const StringRef name = pass->getName();
    const std::vector<const Record *> options = pass->getValueAsListOfDefs("options");
    if (options.empty()) {
      os << "inline std::unique_ptr<mlir::Pass> create" << name << "(const OptionValues &) { return create" << name
         << "(); }\n";
      continue;
    }
    os << "inline void setFlags(" << name << "Options &options, const OptionValues &values) {\n";
    for (const Record *option : options)
      if (option->isSubClassOf("FlagOption"))
        os << "  options." << option->getValueAsString("cppName") << " = formatOption(values."
           << option->getValueAsString("cppName") << ");\n";
    os << "}\n"
       << "inline std::unique_ptr<mlir::Pass> create" << name << "(const OptionValues &values) {\n"
       << "  " << name << "Options options;\n"
       << "  setFlags(options, values);\n"
       << "  return create" << name << "(std::move(options));\n"
       << "}\n";
  }
}

static TableGen::Emitter::Opt values("gen-option-values", emitValues, "members that hold the values of options");
static TableGen::Emitter::Opt rows("gen-option-rows", emitRows, "rows of the table of options");
static TableGen::Emitter::Opt passFlags("gen-pass-flags", emitPassFlags, "passes with the values of their flags");

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv);
  return TableGenMain(argv[0], TableGenMainFn());
}
