//===- TiedTables.h - lookup tables under a name that nothing calls ---------------===//

#ifndef LOWTIDE_LIB_RECOVER_TIEDTABLES_H
#define LOWTIDE_LIB_RECOVER_TIEDTABLES_H

#include "lowtide/Recover/Initializers.h"

#include "llvm/ADT/ArrayRef.h"

namespace lowtide {

class Signature;
struct SignatureEntry;

/// The lookup table that `entry` is another name of, if the program calls no such module (`shared` of T5 and BART,
/// whose encoder and decoder have names of their own for it): the only tensor with several names below its parent, or,
/// of an encoder alone, the only `embed_tokens`. Null: there is none, or more than one.
InitializerInfo *findTiedTable(const Signature &signature, const SignatureEntry &entry,
                               llvm::MutableArrayRef<InitializerInfo> infos);

} // namespace lowtide

#endif // LOWTIDE_LIB_RECOVER_TIEDTABLES_H
