//===- Cards.cpp - what GPUs have for a step --------------------*- C++ -*-===//
//
// Sources of the totals, which are below what a card's name says:
//  - `total capacity` in PyTorch's reports: RTX 3070 7.78 GiB (akshitac8/OW-DETR#46), RTX 3080 9.78 GiB
//    (zai-org/CogVideo#34), RTX 4090 23.52 to 23.65 GiB (Soul-AILab/SoulX-FlashTalk#5, Nightmare-n/DepthAnyVideo and
//    others; the least is taken), RTX 5090 31.37 GiB (Wan-Video/Wan2.1#465), A10 21.99 GiB (zai-org/CogVLM#236), L40
//    44.40 GiB (QwenLM/Qwen3-VL#2097), A100 80 GB 79.25 GiB (levihsu/OOTDiffusion#235);
//  - RTX 3090: 24123 MiB (ggml-org/llama.cpp#24608); RTX 6000 Ada: 50865307648 bytes (unslothai/unsloth-zoo#1053);
//  - nvidia-smi, of which the driver keeps some hundreds of MiB: A100 40 GB 40960 MiB, H100 81559 MiB (85520809984
//    bytes), L4 23034 MiB, L40S 46068 MiB (modal-labs/modal-client#2797): 500 to 600 MiB more are taken there.
// What is taken: a bare context is 256 MiB (RTX 3090, invoke-ai/InvokeAI#9413) to 426 MiB (RTX 6000 Ada,
// unslothai/unsloth-zoo#1053), about 400 MiB with the kernels that PyTorch loads as it needs them
// (pytorch/pytorch#109888, #107667). To that come kernels of cuBLASLt and cuDNN; workspaces of libraries are in the
// plan. A desktop on the card takes its own part, which is not counted. Nothing of this was measured by us.
//
//===----------------------------------------------------------------------===//

#include "Cards.h"
#include "llvm/ADT/STLExtras.h"

using namespace lowtide::driver;
using llvm::StringRef;

static constexpr Card cards[] = {
    {"rtx3070", "GeForce RTX 3070, 8 GB", 7966, 500},
    {"rtx3080", "GeForce RTX 3080, 10 GB", 10014, 500},
    {"rtx3090", "GeForce RTX 3090, 24 GB", 24123, 500},
    {"rtx4090", "GeForce RTX 4090, 24 GB", 24084, 600},
    {"rtx5090", "GeForce RTX 5090, 32 GB", 32122, 700},
    {"a10", "A10, 24 GB", 22517, 500},
    {"l4", "L4, 24 GB", 23034, 1000},
    {"l40", "L40, 48 GB", 45465, 600},
    {"l40s", "L40S, 48 GB", 46068, 1200},
    {"rtx6000ada", "RTX 6000 Ada, 48 GB", 48508, 600},
    {"a100-40gb", "A100, 40 GB", 40960, 1200},
    {"a100-80gb", "A100, 80 GB", 81152, 600},
    {"h100", "H100, 80 GB", 81559, 1300},
};

llvm::ArrayRef<Card> lowtide::driver::listCards() { return cards; }

static std::string plain(StringRef name) {
  std::string text = name.lower();
  llvm::erase_if(text, [](char c) { return c == ' ' || c == '-' || c == '_'; });
  return text;
}

const Card *lowtide::driver::findCard(StringRef name) {
  const auto *found = llvm::find_if(cards, [&](const Card &card) { return plain(card.name) == plain(name); });
  return found == std::end(cards) ? nullptr : found;
}
