//===- Recovered.h - what a rule of recovery did ----------------------------------===//

#ifndef LOWTIDE_LIB_RECOVER_RECOVERED_H
#define LOWTIDE_LIB_RECOVER_RECOVERED_H

#include <string>
#include <vector>

namespace lowtide {

/// Names of the program's values, parameters or layers.
struct Recovered {
  /// What came back.
  std::vector<std::string> restored;
  /// What the file does not tell enough about.
  std::vector<std::string> unknown;
};

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_RECOVERED_H
