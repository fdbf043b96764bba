//===- WideVectors.h - does this machine have vectors of 64 bytes? ---------===//
#ifndef LOWTIDE_RUNTIME_KERNELS_WIDEVECTORS_H
#define LOWTIDE_RUNTIME_KERNELS_WIDEVECTORS_H

namespace lowtide::rt::kernels {

/// Does this machine have AVX-512, as much of it as x86-64-v4 names?
bool hasWideVectors();
/// And does it multiply twice as many numbers with it? Zen 4 (AMD family 19h) does not: it takes two turns for each
/// vector, and products with tiles of that width run at 0.95 to 1.0 of the rate of those of half of it.
bool prefersWideVectors();

} // namespace lowtide::rt::kernels

#endif // LOWTIDE_RUNTIME_KERNELS_WIDEVECTORS_H
