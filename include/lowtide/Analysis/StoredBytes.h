//===- StoredBytes.h - bytes for each trained number ------------*- C++ -*-===//
//
// What a step takes for its parameters, by part and by group of parameters.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace lowtide {

class StoredBytes {
public:
  /// Master: what the parameter lacks of f32. Moments: state of the update. Average: of the weights. Gradients: alive
  /// at once at most, as far as is known.
  enum class Part : unsigned { Parameter, Master, Moments, Average, Gradient };
  static constexpr unsigned numParts = 5;
  /// What a state is of its parameter; `slot`: what its name has after the parameter's, `.exp_avg`.
  static Part getPart(llvm::StringRef slot);

  struct Group {
    std::string name; ///< as --group has it; empty: parameters of no group
    unsigned tensors = 0;
    uint64_t elements = 0;
    std::array<uint64_t, numParts> bytes = {};

    uint64_t get(Part part) const { return bytes[static_cast<unsigned>(part)]; }
    /// Of what stays between steps.
    uint64_t getStored() const {
      return get(Part::Parameter) + get(Part::Master) + get(Part::Moments) + get(Part::Average);
    }
    /// "8.07 bytes a parameter: 2.00 for itself, 2.00 for its master, 4.07 for moments; gradients at most 4.00 more".
    std::string str() const;
  };

  void addParameter(llvm::StringRef name, llvm::StringRef group, uint64_t elements, uint64_t bytes);
  /// `name`: `<parameter>.<slot>`, of a parameter that was added; other state does not count.
  void addState(llvm::StringRef name, uint64_t bytes);
  void addGradient(llvm::StringRef parameter, uint64_t bytes);
  /// Of all parameters together, whosever they are.
  void setGradients(uint64_t bytes);

  bool isEmpty() const { return all.tensors == 0; }
  const Group &getAll() const { return all; }
  /// In order of their first parameter; all are one where no group was given.
  llvm::ArrayRef<Group> getGroups() const { return groups; }

  /// A line for all parameters, and one for each group where there are several.
  void print(llvm::raw_ostream &os) const;
  /// The same figures in bytes: "parameter_bytes", …, of all parameters and of each of "groups".
  llvm::json::Object toJson() const;

private:
  void add(llvm::StringRef parameter, Part part, uint64_t bytes);

  Group all;
  std::vector<Group> groups;
  llvm::StringMap<unsigned> groupOf; ///< by parameter
};

} // namespace lowtide
