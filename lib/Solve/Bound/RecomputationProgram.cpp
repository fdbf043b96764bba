//===- RecomputationProgram.cpp - recomputation as a program --------------===//
//
// Rows of an interval that ends at program point m:
// 1. what is there at m was there after the program point before, was made for the
//    first time since, or was recomputed: S ≤ A' + R;
// 2. what the interval's instructions read was there at some time in it, and so
//    was what its recomputations read: 1 ≤ A' + R, R(k) ≤ A' + R;
// 3. bytes at m: values that are there, results not written over a dying
//    operand, workspace;
// 4. bytes while k runs again: its operands, results and workspace, and what was
//    carried through the whole interval (S − R of it);
// 5. after every program point, along a chain of values of which the first is read
//    later: it is there, or loaded later, or what it is made from is, or that is
//    recomputed later, and so on. Without it a share of one value, kept for long, would serve to
//    make many shares of another, one after the other. There are far more chains
//    than rows: those that a solution violates are added (findViolatedChains);
// 6. of whole numbers, where no order of what runs again in an interval is within
//    the budget: some of what is wanted is not there at the end, or something
//    that would help was there or ran (findImpossibleIntervals).
//
// A result of an interval's own instruction counts as there in all of it, and an
// operation that runs again twice in an interval is paid once: both only lower
// the bound.
//
//===----------------------------------------------------------------------===//
#include "RecomputationProgram.h"
#include "../Searches/OnDemand.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lowtide::solve {

namespace {
constexpr uint32_t none = UINT32_MAX;
constexpr int64_t never = INT64_MAX;
/// A chain that adds up to more than one less this is no cut: there would be many, for little.
constexpr double leastViolation = 0.05;
} // namespace

RecomputationProgram::RecomputationProgram(const StepGraph &graph, std::span<const uint32_t> order,
                                           uint64_t budgetBytes, unsigned mostMoments, bool countsLanes)
    : graph(graph), order(order), budget(std::max<uint64_t>(budgetBytes, 1)), countsLanes(countsLanes) {
  for (const StepOperation &operation : graph.operations)
    secondsOfOne += operation.kind == StepOperation::Kind::Computes ? operation.seconds : 0;
  secondsOfOne = std::max(secondsOfOne, 1e-30);
  findLives();
  chooseMoments(std::max(mostMoments, 1u), budget);
  stride = std::max(graph.values.size(), graph.operations.size() + graph.reruns.size());
  for (std::vector<Term> *terms : {&resident, &after, &again, &back})
    terms->assign((points.size() + 1) * stride, zero);
  for (unsigned interval = 0; interval <= points.size(); ++interval) {
    firstColumns.push_back(int32_t(program.columns.size()));
    addColumns(interval);
    addNeeds(interval);
    if (interval < points.size()) {
      countMoment(interval);
      countReruns(interval);
    }
  }
  if (countsLanes)
    addLaneRows();
}

void RecomputationProgram::findLives() {
  const size_t numValues = graph.values.size(), numOps = graph.operations.size() + graph.reruns.size();
  begins.assign(numValues, never);
  lastRead.assign(numValues, -1);
  until.assign(numValues, -1);
  maker.assign(numValues, none);
  loader.assign(numValues, none);
  for (const StepOperation &operation : graph.operations)
    for (uint32_t load : countsLanes ? operation.loads : std::vector<uint32_t>())
      loader[graph.reruns[load].writes.front()] = load;
  deadline.assign(numOps, never);
  rerunFrom.assign(numOps, never);
  rerunUntil.assign(numOps, -1);
  isManaged.assign(numValues, false);
  for (uint32_t op = 0; op < numOps; ++op) {
    leastSeconds.push_back(graph.at(op).kind == StepOperation::Kind::Computes ? graph.at(op).seconds : 0);
    leastWorkspace.push_back(graph.workspace(op));
  }
  for (uint32_t op = 0; op < graph.operations.size(); ++op)
    if (!graph.operations[op].reruns.empty() && isRecomputable(graph, op))
      wholes.push_back(op);
  for (uint32_t op : wholes)
    for (uint32_t part : listReruns(graph, op)) {
      leastSeconds[part] = std::min(leastSeconds[part], graph.operations[op].seconds);
      leastWorkspace[part] = std::min(leastWorkspace[part], graph.workspace(op));
    }
  std::vector<int64_t> updatedAt(numValues, never);
  std::vector<uint32_t> byBegin;
  for (uint32_t now = 0; now < order.size(); ++now) {
    const StepOperation &operation = graph.operations[order[now]];
    for (uint32_t value : operation.reads)
      lastRead[value] = now;
    for (uint32_t value : operation.updates)
      updatedAt[value] = now;
    for (uint32_t value : operation.writes) {
      begins[value] = now;
      maker[value] = findMaker(graph, value).value_or(none);
      if (!graph.values[value].placed)
        byBegin.push_back(value);
    }
  }
  // The smallest values, a five hundredth of the budget together, are taken as always there.
  managed = byBegin;
  std::sort(managed.begin(), managed.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(graph.size(a), begins[a]) < std::pair(graph.size(b), begins[b]);
  });
  uint64_t negligible = 0;
  size_t first = 0;
  while (first < managed.size() && negligible + graph.size(managed[first]) <= budget / 500)
    negligible += graph.size(managed[first++]);
  managed.erase(managed.begin(), managed.begin() + first);
  for (uint32_t value : managed)
    isManaged[value] = true;

  // Later values first: a value is of use as long as something that is made from it is.
  until = lastRead;
  for (size_t i = byBegin.size(); i-- > 0;) {
    const uint32_t value = byBegin[i], op = maker[value];
    if (op == none)
      continue;
    rerunUntil[op] = std::max(rerunUntil[op], until[value]);
    rerunFrom[op] = std::min(rerunFrom[op], begins[value]);
    reruns.push_back(op);
    for (uint32_t read : graph.at(op).reads) {
      if (graph.values[read].producer < 0)
        deadline[op] = std::min(deadline[op], updatedAt[read]);
      else
        until[read] = std::max(until[read], rerunUntil[op]);
    }
  }
  std::sort(reruns.begin(), reruns.end());
  reruns.erase(std::unique(reruns.begin(), reruns.end()), reruns.end());
}

void RecomputationProgram::chooseMoments(unsigned most, uint64_t budget) {
  if (order.size() <= most) {
    points.resize(order.size());
    std::iota(points.begin(), points.end(), 0);
    return;
  }
  // In each of as many stretches the fullest instruction of the order without recomputation.
  Timeline timeline = evaluate(graph, order).value_or(Timeline());
  if (timeline.live.empty())
    return;
  for (unsigned i = 0; i < most; ++i) {
    const size_t from = order.size() * i / most, to = order.size() * (i + 1) / most;
    auto fullest = std::max_element(timeline.live.begin() + from, timeline.live.begin() + to);
    points.push_back(uint32_t(fullest - timeline.live.begin()));
  }
}

double RecomputationProgram::addTerm(Term term, double factor) {
  if (term >= 0)
    program.addEntry(term, factor);
  return term == one ? factor : 0;
}

RecomputationProgram::Term RecomputationProgram::comeInto(unsigned interval, uint32_t value) const {
  if (!isManaged[value] || begins[value] >= previous(interval))
    return one;
  return interval ? at(after, interval - 1, value) : zero;
}

void RecomputationProgram::addSupply(Term left, unsigned interval, uint32_t value) {
  const Term come = comeInto(interval, value);
  if (come == one || left == zero)
    return;
  const double constant = addTerm(left, 1) + addTerm(come, -1);
  if (maker[value] != none)
    addTerm(at(again, interval, maker[value]), -1);
  addTerm(at(back, interval, value), -1);
  program.endRow(-LinearProgram::infinity, -constant);
}

void RecomputationProgram::addColumns(unsigned interval) {
  const int64_t before = previous(interval);
  for (uint32_t op : reruns)
    if (rerunFrom[op] < before && rerunUntil[op] > before && deadline[op] > before)
      at(again, interval, op) = program.addColumn(leastSeconds[op] / secondsOfOne, 0, 1);
  for (uint32_t op : wholes)
    addWhole(interval, op);
  addLoads(interval);
  if (interval == points.size())
    return;
  const int64_t now = points[interval];
  const StepOperation &operation = graph.operations[order[now]];
  for (uint32_t value : managed) {
    Term &term = at(resident, interval, value);
    const bool kept = graph.values[value].kept;
    if (begins[value] > now)
      continue;
    if (begins[value] == now) {
      // Its bytes are those of a result; after the instruction it is there if it is wanted.
      at(after, interval, value) = kept || until[value] > now ? one : zero;
      continue;
    }
    if (kept || (!canReturn(value) && now <= lastRead[value])) {
      term = one;
    } else if (now <= until[value]) {
      const bool isRead = lastRead[value] >= now &&
                          std::find(operation.reads.begin(), operation.reads.end(), value) != operation.reads.end();
      term = program.addColumn(0, isRead, 1);
      addSupply(term, interval, value);
    }
    Term &rest = at(after, interval, value);
    rest = term;
    if (kept || term == zero)
      continue;
    const bool handedOn =
        std::any_of(operation.overwrites.begin(), operation.overwrites.end(), [&](const std::vector<uint32_t> &over) {
          return std::find(over.begin(), over.end(), value) != over.end();
        });
    if (until[value] <= now)
      rest = zero;
    else if (handedOn && (canReturn(value) || lastRead[value] <= now))
      rest = program.addColumn(0, 0, 1);
  }
}

void RecomputationProgram::addWhole(unsigned interval, uint32_t op) {
  const double whole = graph.operations[op].seconds;
  std::vector<std::pair<Term, double>> parts;
  double sum = 0;
  for (uint32_t part : listReruns(graph, op))
    if (const Term term = at(again, interval, part); term != zero) {
      parts.push_back({term, leastSeconds[part]});
      sum += leastSeconds[part];
    }
  if (sum <= whole)
    return;
  auto addSeconds = [&](double seconds) {
    const Term term = program.addColumn(seconds / secondsOfOne, 0, 1);
    program.columns.back().isContinuous = true;
    return term;
  };
  // R ≤ alone + together.
  const Term together = addSeconds(whole);
  for (auto [term, seconds] : parts) {
    const Term alone = addSeconds(seconds);
    program.columns[term].cost = 0;
    program.addEntry(alone, 1);
    program.addEntry(together, 1);
    program.addEntry(term, -1);
    program.endRow(0, LinearProgram::infinity);
  }
}

void RecomputationProgram::addNeeds(unsigned interval) {
  const int64_t before = previous(interval),
                now = interval < points.size() ? int64_t(points[interval]) : int64_t(order.size());
  std::vector<uint32_t> needed;
  for (int64_t position = before + 1; position < now; ++position)
    for (uint32_t value : graph.operations[order[position]].reads)
      if (graph.values[value].producer >= 0)
        needed.push_back(value);
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  for (uint32_t value : needed)
    addSupply(one, interval, value);
  for (uint32_t op : reruns)
    if (Term column = at(again, interval, op); column != zero)
      for (uint32_t read : graph.at(op).reads)
        if (graph.values[read].producer >= 0)
          addSupply(column, interval, read);
}

void RecomputationProgram::countMoment(unsigned interval) {
  const StepOperation &operation = graph.operations[order[points[interval]]];
  const double unit = 1 / double(budget);
  // Results first: each handed-on share is a column with a row of its own.
  std::vector<std::pair<Term, double>> terms;
  for (size_t i = 0; i < operation.writes.size(); ++i) {
    const uint32_t result = operation.writes[i];
    if (!isManaged[result])
      continue;
    std::vector<Term> rests;
    bool free = false;
    for (uint32_t read : operation.overwrites[i]) {
      if (!mayTakeOver(graph, result, read))
        continue;
      Term rest = isManaged[read] ? at(after, interval, read) : zero;
      free |= rest == zero;
      if (rest != one)
        rests.push_back(rest);
    }
    if (free)
      continue;
    Term fresh = one;
    if (!rests.empty()) {
      fresh = program.addColumn(0, 0, 1);
      program.addEntry(fresh, 1);
      // Operands of other values are never the same column.
      for (Term rest : rests)
        program.addEntry(rest, -1);
      program.endRow(1 - double(rests.size()), LinearProgram::infinity);
    }
    terms.push_back({fresh, double(graph.size(result)) * unit});
  }
  for (uint32_t value : managed)
    if (Term term = at(resident, interval, value); term != zero)
      terms.push_back({term, double(graph.size(value)) * unit});
  double constant = double(graph.workspace(order[points[interval]])) * unit;
  for (auto [term, bytes] : terms)
    constant += addTerm(term, bytes);
  program.endRow(-LinearProgram::infinity, 1 - constant);
}

void RecomputationProgram::prepareChains() {
  sumLater(again, reruns, everAgain);
  sumLater(back, managed, everBack);
}

void RecomputationProgram::sumLater(const std::vector<Term> &terms, const std::vector<uint32_t> &items,
                                    std::vector<Term> &sums) {
  sums.assign((points.size() + 1) * stride, zero);
  for (unsigned interval = points.size() + 1; interval-- > 0;)
    for (uint32_t item : items) {
      const Term here = at(terms, interval, item),
                 later = interval < points.size() ? at(sums, interval + 1, item) : zero;
      Term &sum = at(sums, interval, item);
      if (here == zero || later == zero) {
        sum = here == zero ? later : here;
        continue;
      }
      sum = program.addColumn(0, 0, 1);
      program.columns.back().isContinuous = true;
      program.addEntry(sum, 1);
      program.addEntry(here, -1);
      program.addEntry(later, -1);
      program.endRow(-LinearRows::infinity, 0);
    }
}

std::vector<uint32_t> RecomputationProgram::sortByMakers() const {
  std::vector<uint32_t> sorted, open = managed;
  std::vector<char> isSeen(graph.values.size()), isSorted(graph.values.size());
  while (!open.empty()) {
    const uint32_t value = open.back();
    if (isSeen[value]) {
      open.pop_back();
      if (!std::exchange(isSorted[value], true))
        sorted.push_back(value);
      continue;
    }
    isSeen[value] = true;
    if (maker[value] != none)
      for (uint32_t read : graph.at(maker[value]).reads)
        if (isManaged[read] && !isSeen[read])
          open.push_back(read);
  }
  return sorted;
}

LinearRows RecomputationProgram::findViolatedChains(const std::vector<double> &columns) const {
  LinearRows cuts;
  auto share = [&](Term term) { return term == one ? 1 : term == zero ? 0 : columns[term]; };
  struct Link {
    /// The least that a chain from here adds up to, and where it goes on.
    double sum = LinearRows::infinity;
    uint32_t next = none;
  };
  std::vector<Link> links(graph.values.size());
  // Of an operation: what it runs again in all intervals after the program point.
  std::vector<double> later(graph.operations.size() + graph.reruns.size(), 0);
  // Of a value: what of it is loaded there.
  std::vector<double> laterBack(graph.values.size(), 0);
  const std::vector<uint32_t> operandsFirst = sortByMakers();
  std::vector<uint32_t> violated;
  for (unsigned interval = points.size(); interval-- > 0;) {
    for (uint32_t op : reruns)
      later[op] += share(at(again, interval + 1, op));
    for (uint32_t value : managed)
      laterBack[value] += share(at(back, interval + 1, value));
    const int64_t now = points[interval];
    violated.clear();
    for (uint32_t value : operandsFirst) {
      Link &link = links[value] = {};
      if (begins[value] >= now || maker[value] == none || at(after, interval, value) == one)
        continue;
      link.sum = later[maker[value]];
      for (uint32_t read : graph.at(maker[value]).reads)
        if (links[read].sum < link.sum)
          link = {links[read].sum, read};
      link.sum += share(at(after, interval, value)) + laterBack[value];
      if (lastRead[value] > now && link.next != none && link.sum < 1 - leastViolation)
        violated.push_back(value);
    }
    for (uint32_t value : violated) {
      double known = 0;
      auto add = [&](Term term) {
        if (term >= 0)
          cuts.addEntry(term, 1);
        known += term == one;
      };
      uint32_t last = value;
      auto addLink = [&] {
        add(at(after, interval, last));
        add(at(everBack, interval + 1, last));
      };
      for (addLink(); links[last].next != none; addLink())
        last = links[last].next;
      add(at(everAgain, interval + 1, maker[last]));
      cuts.endRow(1 - known, LinearRows::infinity);
    }
  }
  return cuts;
}

int64_t RecomputationProgram::freshBytes(const StepOperation &operation) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < operation.writes.size(); ++i) {
    const uint32_t result = operation.writes[i];
    if (isManaged[result] && std::none_of(operation.overwrites[i].begin(), operation.overwrites[i].end(),
                                          [&](uint32_t read) { return mayTakeOver(graph, result, read); }))
      bytes += int64_t(graph.size(result));
  }
  return bytes;
}

void RecomputationProgram::countReruns(unsigned interval) {
  const int64_t before = previous(interval);
  const double unit = 1 / double(budget);
  std::vector<std::pair<uint32_t, double>> large;
  for (uint32_t op : reruns)
    if (at(again, interval, op) != zero) {
      int64_t bytes = freshBytes(graph.at(op)) + int64_t(leastWorkspace[op]);
      for (uint32_t read : graph.at(op).reads)
        if (isManaged[read])
          bytes += int64_t(graph.size(read));
      if (double(bytes) * unit > 0.05)
        large.push_back({op, double(bytes) * unit});
    }
  if (large.empty())
    return;
  // What is carried through the whole interval: there at its end and not recomputed in it.
  std::vector<std::pair<uint32_t, Term>> carried;
  for (uint32_t value : managed) {
    const Term term = at(resident, interval, value);
    if (term == zero || begins[value] > before)
      continue;
    const Term made = maker[value] == none ? zero : at(again, interval, maker[value]),
               loaded = at(back, interval, value);
    Term share = term;
    if (made != zero || loaded != zero) {
      share = program.addColumn(0, 0, 1);
      program.addEntry(share, 1);
      const double constant = addTerm(term, -1);
      addTerm(made, 1);
      addTerm(loaded, 1);
      program.endRow(-constant, LinearProgram::infinity);
    }
    carried.push_back({value, share});
  }
  const Term sum = program.addColumn(0, 0, 1);
  program.columns.back().isContinuous = true;
  program.addEntry(sum, 1);
  double constant = 0;
  for (auto [value, share] : carried)
    constant += addTerm(share, -double(graph.size(value)) * unit);
  program.endRow(-constant, LinearProgram::infinity);
  for (auto [op, bytes] : large) {
    program.addEntry(sum, 1);
    program.addEntry(at(again, interval, op), bytes);
    double known = 0;
    const StepOperation &operation = graph.at(op);
    for (auto [value, share] : carried)
      if (std::find(operation.reads.begin(), operation.reads.end(), value) != operation.reads.end() ||
          std::find(operation.writes.begin(), operation.writes.end(), value) != operation.writes.end())
        known += addTerm(share, -double(graph.size(value)) * unit);
    program.endRow(-LinearProgram::infinity, 1 - known);
  }
}

RerunQuestion RecomputationProgram::ask(unsigned interval, const std::vector<double> &columns, double threshold) const {
  auto isMuch = [&](Term term) { return term == one || (term >= 0 && columns[term] >= threshold); };
  RerunQuestion question;
  for (uint32_t value : managed) {
    if (begins[value] > previous(interval))
      continue;
    if (isMuch(comeInto(interval, value)))
      question.there.push_back(value);
    if (isMuch(at(resident, interval, value)))
      question.wanted.push_back(value);
  }
  for (uint32_t op : reruns)
    if (isMuch(at(again, interval, op)))
      question.mayRun.push_back(op);
  return question;
}

LinearRows RecomputationProgram::findImpossibleIntervals(const std::vector<double> &columns) const {
  LinearRows cuts;
  if (points.size() < order.size())
    return cuts;
  const RerunOrder search(graph, isManaged, leastWorkspace, budget);
  for (unsigned interval = 0; interval < points.size(); ++interval) {
    RerunQuestion question = ask(interval, columns, 0.5);
    if (question.mayRun.empty() || !search.isImpossible(question))
      continue;
    // The row is about as few values as possible: small ones are left out first.
    std::sort(question.wanted.begin(), question.wanted.end(),
              [&](uint32_t a, uint32_t b) { return std::pair(graph.size(a), a) < std::pair(graph.size(b), b); });
    for (size_t i = 0; i < question.wanted.size();) {
      RerunQuestion easier = question;
      easier.wanted.erase(easier.wanted.begin() + i);
      if (search.isImpossible(easier))
        question = std::move(easier);
      else
        ++i;
    }
    // Some that is wanted is not there at the end, or something helps that was not there, or did not run.
    double least = 1;
    for (uint32_t value : question.wanted)
      if (const Term term = at(resident, interval, value); term >= 0) {
        cuts.addEntry(term, -1);
        least -= 1;
      }
    auto addIfItHelps = [&](std::vector<uint32_t> RerunQuestion::*list, uint32_t item, Term term) {
      std::vector<uint32_t> &known = question.*list;
      if (term < 0 || std::find(known.begin(), known.end(), item) != known.end())
        return;
      known.push_back(item);
      if (search.isImpossible(question))
        return;
      known.pop_back();
      cuts.addEntry(term, 1);
    };
    for (uint32_t value : managed)
      if (begins[value] <= previous(interval))
        addIfItHelps(&RerunQuestion::there, value, comeInto(interval, value));
    for (uint32_t op : reruns)
      addIfItHelps(&RerunQuestion::mayRun, op, at(again, interval, op));
    cuts.endRow(least, LinearRows::infinity);
  }
  return cuts;
}

std::optional<Schedule> RecomputationProgram::write(const std::vector<double> &columns, double threshold,
                                                    Again when) const {
  auto isMuch = [&](Term term) { return term == one || (term >= 0 && columns[term] >= threshold); };
  const RerunOrder search(graph, isManaged, leastWorkspace, budget);
  std::vector<char> pinned(graph.values.size(), false);
  for (;;) {
    OnDemand writer(graph, order);
    unsigned interval = 0;
    // After a program point, and when the next one is reached, what the program does not keep is forgotten.
    auto forget = [&](uint32_t position, std::vector<char> &there) {
      const bool isAfter = interval < points.size() && position > points[interval];
      if (!isAfter)
        return;
      for (uint32_t value : managed)
        if (maker[value] != none && begins[value] < int64_t(points[interval]) && !pinned[value])
          there[value] = there[value] && isMuch(at(after, interval, value));
      if (++interval == points.size())
        return;
      if (when == Again::AsSolved)
        for (uint32_t op : search.find(ask(interval, columns, threshold)).order) {
          for (uint32_t result : graph.at(op).writes)
            there[result] = false;
          writer.provide(graph.at(op).writes.front());
        }
    };
    if (writer.run(forget))
      return std::move(writer.schedule);
    if (pinned[writer.missing])
      return std::nullopt;
    pinned[writer.missing] = true;
  }
}

} // namespace lowtide::solve
