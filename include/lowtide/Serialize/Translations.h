//===- Translations.h - plans as bytes, for lowtide-translate ---*- C++ -*-===//
//
// Registration of `--export-plan` and `--import-plan`.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace lowtide {

/// Adds the plan's translations to MLIR's translation driver.
void registerPlanTranslations();

} // namespace lowtide
