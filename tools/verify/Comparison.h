//===- Comparison.h - a training step next to a record of it ----------------===//
//
// Runs an artifact on the record's batch and says of every number of the record whether the step computes it. Knows no
// compiler, so that programs that only link the runtime can ask, too.
//
//===----------------------------------------------------------------------===//
#ifndef LOWTIDE_TOOLS_VERIFY_COMPARISON_H
#define LOWTIDE_TOOLS_VERIFY_COMPARISON_H

#include "Record.h"

#include "runtime/Session.h"

namespace lowtide::verify {

enum class Verdict {
  Agrees,      ///< within the tolerance
  Unused,      ///< no gradient on either side
  Differs,     ///< beyond the tolerance, not finite, or of another shape
  OtherStart,  ///< the model file begins with other values than the record
  Missing,     ///< the model file has none of that name
  NotTrained,  ///< a constant of the step, with a gradient in the record
  NotRecorded, ///< trained by the step, without a gradient in the record
};

/// "agrees", "differs", "other start", …: one or two words.
const char *verdictText(Verdict verdict);
bool isGood(Verdict verdict);

/// One comparison, of one name.
struct Row {
  std::string name;
  Verdict verdict = Verdict::Agrees;
  double difference = 0; ///< the largest of any entry; NaN where there is nothing to compare
  double largest = 0;    ///< absolute entry of the record
  std::string detail;    ///< half a sentence; may be empty
};

/// The detail of what the file does not hold, where it need not.
inline constexpr const char *absentText = "not in the file";

struct Comparison {
  std::vector<Row> gradients; ///< of step 0, one for each parameter of either side
  std::vector<Row> starts;    ///< parameters and buffers whose values before the first step are others
  std::vector<Row> buffers;   ///< after one step
  std::vector<Row> losses;    ///< "step 0" …
  std::string producer;       ///< of the record

  bool agrees() const;
};

struct ComparisonOptions {
  /// Of any entry, in units of the largest entry of its array; a hundredth of it, in units of the largest gradient
  /// around, of gradients that are zero but for rounding.
  double tolerance = 1e-5;
  unsigned threads = 0; ///< as BindOptions has it
};

/// Compares a session that has the entries `train` and `gradient`, computes in f64 and draws no random numbers. It is
/// bound here. Starts from the record's values where they are there. Fails where the step cannot be run on the batch.
rt::Expected<Comparison> compare(rt::Session &session, const Record &record, const ComparisonOptions &options = {});

/// What an entry returns on the record's batch besides its loss and gradients, by name. Binds the session, and starts
/// as `compare` does.
rt::Expected<Arrays> runOutputs(rt::Session &session, const Record &record, const std::string &entry);

/// Outputs of modules: `ours` holds for each module the values that it may return (name → candidates, which may be
/// none). The rows keep the record's order; a module without candidates of its size is `Missing`, which is no fault.
std::vector<Row> compareOutputs(const std::map<std::string, std::vector<const Array *>> &ours, const Record &record,
                                double tolerance);

} // namespace lowtide::verify

#endif // LOWTIDE_TOOLS_VERIFY_COMPARISON_H
