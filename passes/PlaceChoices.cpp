//===- PlaceChoices.cpp - which tensors may lie in which memory -----------===//
#include "PlaceChoices.h"
#include "PlanLayout.h"
#include "lowtide/Support/StableSort.h"

using namespace mlir;
using namespace lowtide;

static bool findLoops(ModuleOp module) {
  return module
      .walk([](Operation *op) { return isa<RepeatInterface>(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

PlaceChoices::PlaceChoices(ModuleOp module, ArrayRef<OffloadRoom> rooms)
    : tensors(listLastingTensors(module)), sums(listCarriedSums(module)), rooms(rooms), hasLoops(findLoops(module)) {
  sortStably(tensors, [](const LastingTensor &a, const LastingTensor &b) { return a.isState && !b.isState; });
}

TensorPlaces PlaceChoices::assign(bool withParameters) const {
  TensorPlaces places;
  auto left = llvm::map_to_vector(rooms, [](const OffloadRoom &room) { return room.bytes; });
  for (const LastingTensor &tensor : tensors) {
    if (!tensor.isState && !withParameters)
      break;
    for (auto [room, bytes] : llvm::zip_equal(rooms, left)) {
      const uint64_t needed = solve::alignTo(tensor.bytes, getAlignment(room.memory.space));
      if (needed > bytes)
        continue;
      bytes -= needed;
      places.spaces[tensor.name] = room.memory.space;
      break;
    }
  }
  return places;
}

void PlaceChoices::assignSums(TensorPlaces &places) const {
  auto left = llvm::map_to_vector(rooms, [](const OffloadRoom &room) { return room.bytes; });
  auto take = [&](size_t room, uint64_t bytes) {
    const uint64_t needed = solve::alignTo(bytes, getAlignment(rooms[room].memory.space));
    if (needed > left[room])
      return false;
    left[room] -= needed;
    return true;
  };
  for (size_t room = 0; room < rooms.size(); ++room)
    for (const LastingTensor &tensor : tensors)
      if (auto place = places.spaces.find(tensor.name);
          place != places.spaces.end() && place->second == rooms[room].memory.space)
        take(room, tensor.bytes);
  for (auto [number, sum] : llvm::enumerate(sums))
    for (size_t room = 0; room < rooms.size(); ++room)
      if (take(room, sum.bytes)) {
        places.sums[unsigned(number)] = rooms[room].memory.space;
        break;
      }
}

std::vector<TensorPlaces> PlaceChoices::list() const {
  std::vector<TensorPlaces> places(1);
  for (bool withParameters : {false, true})
    if (TensorPlaces more = assign(withParameters); more != places.back())
      places.push_back(std::move(more));
  if (places.size() > 1 && hasLoops) {
    places.push_back(places.back());
    places.back().entersLoops = true;
  }
  return places;
}

std::vector<TensorPlaces> PlaceChoices::listWithSums() const {
  std::vector<TensorPlaces> places = sums.empty() ? std::vector<TensorPlaces>() : list();
  llvm::for_each(places, [&](TensorPlaces &more) { assignSums(more); });
  llvm::erase_if(places, [](const TensorPlaces &more) { return more.sums.empty(); });
  return places;
}

TensorPlaces PlaceChoices::limit(const TensorPlaces &places, double part) const {
  uint64_t all = 0;
  for (const LastingTensor &tensor : tensors)
    all += places.spaces.contains(tensor.name) ? tensor.bytes : 0;
  for (auto [number, space] : places.sums)
    all += sums[number].bytes;
  auto left = uint64_t(part * double(all));
  TensorPlaces fewer;
  fewer.entersLoops = places.entersLoops;
  for (const LastingTensor &tensor : tensors)
    if (auto place = places.spaces.find(tensor.name); place != places.spaces.end() && tensor.bytes <= left) {
      left -= tensor.bytes;
      fewer.spaces.insert(*place);
    }
  for (auto place : places.sums)
    if (const uint64_t bytes = sums[place.first].bytes; bytes <= left) {
      left -= bytes;
      fewer.sums.insert(place);
    }
  return fewer;
}

double PlaceChoices::countLeastSeconds(const TensorPlaces &places) const {
  double most = 0;
  for (const OffloadRoom &room : rooms) {
    double lane = 0;
    for (const LastingTensor &tensor : tensors)
      if (auto place = places.spaces.find(tensor.name);
          place != places.spaces.end() && place->second == room.memory.space)
        lane += room.memory.lanes.back.getSeconds(tensor.bytes);
    most = std::max(most, lane);
  }
  for (auto [number, space] : places.sums)
    for (const OffloadRoom &room : rooms)
      if (room.memory.space == space)
        most += double(sums[number].getLoads()) * (room.memory.lanes.back.getSeconds(sums[number].bytes) +
                                                   room.memory.lanes.away.getSeconds(sums[number].bytes));
  return most;
}
