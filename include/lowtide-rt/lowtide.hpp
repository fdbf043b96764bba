//===- lowtide.hpp - the C interface, with owners and exceptions -----------===//
#ifndef LOWTIDE_RT_LOWTIDE_HPP
#define LOWTIDE_RT_LOWTIDE_HPP

#include "lowtide-rt/lowtide.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace lowtide {

/// A failed status, as an exception.
class Error : public std::runtime_error {
public:
  explicit Error(const lowtide_status *status)
      : std::runtime_error(text(status)), code_(lowtide_status_code(status)), where_(lowtide_status_where(status)) {}
  lowtide_code code() const { return code_; }
  const std::string &where() const { return where_; }

private:
  static std::string text(const lowtide_status *status) {
    std::string where = lowtide_status_where(status);
    return (where.empty() ? "" : where + ": ") + lowtide_status_message(status);
  }
  lowtide_code code_;
  std::string where_;
};

/// Owns a session. Functions throw Error.
class TrainingSession {
public:
  explicit TrainingSession(const std::string &path) {
    lowtide_session *session = nullptr;
    check(lowtide_session_load(path.c_str(), &session));
    session_.reset(session);
  }

  void bind(const lowtide_bind_options &options = {}) { check(lowtide_session_bind(session_.get(), &options)); }
  lowtide_tensor tensor(const std::string &entry, const std::string &name) const {
    lowtide_tensor tensor;
    check(lowtide_session_tensor(session_.get(), entry.c_str(), name.c_str(), &tensor));
    return tensor;
  }
  double learningRate(int64_t step) const { return lowtide_session_learning_rate(session_.get(), step); }
  void writeScalars(const std::string &entry, double lr, int64_t step, int64_t seed = 0, int64_t row = 0) {
    check(lowtide_session_write_scalars(session_.get(), entry.c_str(), lr, step, seed, row));
  }
  /// Writes the scalar `name` ("lr", "step", "seed", "row") where the entry has it.
  template <typename Number> void writeScalar(const std::string &entry, const std::string &name, Number value) {
    if constexpr (std::is_floating_point_v<Number>)
      check(lowtide_session_write_real(session_.get(), entry.c_str(), name.c_str(), value));
    else
      check(lowtide_session_write_integer(session_.get(), entry.c_str(), name.c_str(), value));
  }
  void step(const std::string &entry = "train") { check(lowtide_session_step(session_.get(), entry.c_str())); }
  /// Where tensor data are the host's copy (lowtide.h): brings parameters, state and the outputs of `entry` there.
  void download(const std::string &entry = "train") { check(lowtide_session_download(session_.get(), entry.c_str())); }
  void upload() { check(lowtide_session_upload(session_.get())); }
  void save(const std::string &directory, int64_t step, int64_t seed = 0) const {
    check(lowtide_session_save(session_.get(), directory.c_str(), step, seed));
  }
  /// Returns the next step.
  int64_t resume(const std::string &directory) {
    int64_t step = 0, seed = 0;
    check(lowtide_session_resume(session_.get(), directory.c_str(), &step, &seed));
    return step;
  }
  uint64_t plannedBytes() const { return lowtide_session_planned_bytes(session_.get()); }
  uint64_t allocatedBytes() const { return lowtide_session_allocated_bytes(session_.get()); }
  lowtide_session *get() const { return session_.get(); }

private:
  static void check(lowtide_status *status) {
    if (!status)
      return;
    Error error(status);
    lowtide_status_free(status);
    throw error;
  }
  struct Free {
    void operator()(lowtide_session *session) const { lowtide_session_free(session); }
  };
  std::unique_ptr<lowtide_session, Free> session_;
};

} // namespace lowtide

#endif // LOWTIDE_RT_LOWTIDE_HPP
