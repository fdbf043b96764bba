//===- Plans.h - small plans written by hand for the runtime's tests -------===//
#ifndef LOWTIDE_TEST_UNIT_RUNTIME_PLANS_H
#define LOWTIDE_TEST_UNIT_RUNTIME_PLANS_H

#include "plan.pb.h"
#include "runtime/FileStaging.h"
#include "runtime/Verify.h"
#include "runtime/Workspace.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace lowtide::rt::test {

inline void set(plan::Call &call, const char *name, int64_t value) {
  plan::Attribute *attribute = call.add_attributes();
  attribute->set_name(name);
  attribute->set_i(value);
}
inline void set(plan::Call &call, const char *name, int value) { set(call, name, int64_t(value)); }
inline void set(plan::Call &call, const char *name, double value) {
  plan::Attribute *attribute = call.add_attributes();
  attribute->set_name(name);
  attribute->set_f(value);
}
inline void set(plan::Call &call, const char *name, const char *value) {
  plan::Attribute *attribute = call.add_attributes();
  attribute->set_name(name);
  attribute->set_s(value);
}
inline void set(plan::Call &call, const char *name, const std::vector<int64_t> &values) {
  plan::Attribute *attribute = call.add_attributes();
  attribute->set_name(name);
  for (int64_t value : values)
    attribute->mutable_ints()->add_values(value);
}

inline plan::Slice slice(uint32_t arena, uint64_t offset, uint64_t bytes, uint64_t value) {
  plan::Slice result;
  result.set_arena(arena);
  result.set_offset(offset);
  result.set_bytes(bytes);
  result.set_value(value);
  return result;
}

/// States a launch of f32 tensors with so many elements.
inline void addFootprint(plan::Kernel &kernel, int64_t extent, int64_t grain, const std::vector<uint64_t> &reads,
                         const std::vector<uint64_t> &writes) {
  plan::Footprint *footprint = kernel.add_footprints();
  footprint->set_extent(extent);
  footprint->set_grain(grain);
  auto add = [](plan::Footprint::Tensor &tensor, uint64_t elements) {
    tensor.set_dtype(plan::F32);
    tensor.set_elements(elements);
  };
  for (uint64_t elements : reads)
    add(*footprint->add_reads(), elements);
  for (uint64_t elements : writes)
    add(*footprint->add_writes(), elements);
}

/// Of the last footprint: `result` may take the place of `operand`.
inline void addInPlace(plan::Kernel &kernel, uint32_t result, uint32_t operand) {
  plan::Footprint::InPlace *pair = kernel.mutable_footprints(kernel.footprints_size() - 1)->add_in_place();
  pair->set_result(result);
  pair->set_operand(operand);
}

inline void addArena(plan::Plan &plan, const char *name, plan::Arena::Role role, uint64_t bytes,
                     uint64_t imageBytes = 0, plan::Arena::Space space = plan::Arena::DEVICE) {
  plan::Arena *arena = plan.add_arenas();
  arena->set_name(name);
  arena->set_role(role);
  arena->set_space(space);
  arena->set_bytes(bytes);
  arena->set_alignment(64);
  arena->set_image_bytes(imageBytes);
}

inline plan::Binding &bind(plan::Entry &entry, const char *name, plan::Binding::Kind kind, plan::DType dtype,
                           std::initializer_list<int64_t> dims, const plan::Slice &where, uint64_t finalValue) {
  plan::Binding *binding = entry.add_bindings();
  binding->set_name(name);
  binding->set_kind(kind);
  binding->set_dtype(dtype);
  for (int64_t dim : dims)
    binding->add_dims(dim);
  *binding->mutable_slice() = where;
  binding->set_final_value(finalValue);
  binding->set_batch_dim(-1);
  return *binding;
}

/// One entry "run": a fill of so many bytes on the device, out to another space, over the old place, and back to the
/// output "out".
inline plan::Plan evictionPlan(plan::Arena::Space space, const char *target = "reference", int64_t size = 64) {
  const auto bytes = static_cast<uint64_t>(size);
  plan::Plan plan;
  plan.set_format_version(planFormatVersion);
  plan.set_target(target);
  addArena(plan, "transient", plan::Arena::TRANSIENT, bytes);
  addArena(plan, "evicted", plan::Arena::TRANSIENT, bytes, 0, space);
  addArena(plan, "io", plan::Arena::IO, bytes);
  if (space == plan::Arena::FILE) {
    plan.mutable_arenas(1)->set_bytes(alignToFile(bytes)), plan.mutable_arenas(1)->set_alignment(fileAlignment);
    if (!isGpu(target))
      *plan.add_arenas() = listFileStaging();
  }
  plan::Entry &entry = *plan.add_entries();
  entry.set_name("run");
  auto fill = [&](uint64_t value) {
    plan::Fill &fill = *entry.add_instructions()->mutable_fill();
    *fill.mutable_target() = slice(0, 0, bytes, value);
    fill.set_pattern(value), fill.set_pattern_bytes(4);
  };
  auto copy = [&](const plan::Slice &from, const plan::Slice &to) {
    plan::Copy &copy = *entry.add_instructions()->mutable_copy();
    *copy.mutable_source() = from, *copy.mutable_target() = to;
  };
  fill(1);
  copy(slice(0, 0, bytes, 1), slice(1, 0, bytes, 2));
  fill(3);
  copy(slice(1, 0, bytes, 2), slice(0, 0, bytes, 4));
  copy(slice(0, 0, bytes, 4), slice(2, 0, bytes, 5));
  bind(entry, "out", plan::Binding::OUTPUT, plan::I32, {size / 4}, slice(2, 0, bytes, 0), 5);
  return plan;
}

/// One entry "run": the parameter "w" of 16 numbers, which lies in a file, goes to the output "out"; sevens replace it.
inline plan::Plan fileParameterPlan(const char *target = "reference") {
  plan::Plan plan = evictionPlan(plan::Arena::FILE, target);
  plan::Arena &arena = *plan.mutable_arenas(1);
  arena.set_role(plan::Arena::PARAMS);
  arena.set_image_bytes(64);
  plan::Entry &entry = *plan.mutable_entries(0);
  entry.mutable_instructions()->Clear();
  auto copy = [&](const plan::Slice &from, const plan::Slice &to) {
    plan::Copy &copy = *entry.add_instructions()->mutable_copy();
    *copy.mutable_source() = from, *copy.mutable_target() = to;
  };
  copy(slice(1, 0, 64, 1), slice(0, 0, 64, 2));
  copy(slice(0, 0, 64, 2), slice(2, 0, 64, 5));
  plan::Fill &fill = *entry.add_instructions()->mutable_fill();
  *fill.mutable_target() = slice(0, 0, 64, 3);
  fill.set_pattern(7), fill.set_pattern_bytes(4);
  copy(slice(0, 0, 64, 3), slice(1, 0, 64, 4));
  bind(entry, "w", plan::Binding::PARAM, plan::I32, {16}, slice(1, 0, 64, 1), 4).set_from_image(true);
  return plan;
}

} // namespace lowtide::rt::test

#endif // LOWTIDE_TEST_UNIT_RUNTIME_PLANS_H
