//===- Translations.h - the importer as translations of MLIR's driver
//-----------------===//

#ifndef LOWTIDE_IMPORT_TRANSLATIONS_H
#define LOWTIDE_IMPORT_TRANSLATIONS_H

namespace lowtide {

/// Registers `--import-onnx`, `--import-onnx-text` and `--onnx-text-to-onnx`,
/// with the options of `lowtide compile` that concern import (`--dim`,
/// `--shape`, `--batch`, `--params`, `--frozen`, `--rename`).
void registerImportTranslations();

} // namespace lowtide

#endif // LOWTIDE_IMPORT_TRANSLATIONS_H
