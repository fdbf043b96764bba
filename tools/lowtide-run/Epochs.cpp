//===- Epochs.cpp - which rows and which entry a step takes ------------------===//

#include "Epochs.h"

#include <algorithm>

using namespace lowtide;
using namespace lowtide::rt;
using namespace lowtide::run;

Expected<Epochs> Epochs::create(const Dataset &dataset, const Session &session, const std::string &entry,
                                std::optional<uint64_t> shuffleSeed, std::vector<std::string> &notes) {
  Epochs epochs;
  epochs.entry_ = entry;
  epochs.lastEntry_ = entry + "_last";
  epochs.batch_ = std::max<int64_t>(session.artifact().entry(entry)->batch(), 1);
  Expected<Feeder> whole = Feeder::create(dataset, session, entry, shuffleSeed, notes);
  if (!whole)
    return whole.takeStatus();
  epochs.whole_.emplace(std::move(*whole));

  const plan::Entry *last = session.artifact().entry(epochs.lastEntry_);
  const int64_t left = epochs.rows() % epochs.batch_;
  if (!last || session.tensors(entry, plan::Binding::BATCH).empty()) {
    if (left)
      notes.push_back(std::to_string(left) + " of " + std::to_string(epochs.rows()) + " rows fill no batch of " +
                      std::to_string(epochs.batch_) + ": no step of an epoch reads them; --last-batch=" +
                      std::to_string(left) + " of 'lowtide compile' adds a step that does");
    return epochs;
  }
  if (left != last->batch()) {
    notes.push_back("entry '" + printable(epochs.lastEntry_) + "' takes " + std::to_string(last->batch()) +
                    " samples; the data leave " + std::to_string(left) + ", which are left out");
    return epochs;
  }
  Expected<Feeder> rest = Feeder::create(dataset, session, epochs.lastEntry_, shuffleSeed, notes);
  if (!rest)
    return rest.takeStatus();
  epochs.last_.emplace(std::move(*rest));
  return epochs;
}

Epochs::Step Epochs::at(int64_t step) const {
  if (!perEpoch())
    return {&entry_, &*whole_, 0, 0};
  int64_t epoch = step / perEpoch(), position = step % perEpoch();
  bool isLast = position == whole_->stepsPerEpoch();
  return {isLast ? &lastEntry_ : &entry_, isLast ? &*last_ : &*whole_, epoch, position * batch_};
}
