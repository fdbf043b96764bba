//===- Findings.cpp - how a file differs from its program, in words ---------------===//

#include "lowtide/Recover/Findings.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace lowtide;
using llvm::StringRef;

namespace {
struct Row {
  FindingKind kind;
  const char *name;
  Certainty certainty;
  /// With places in braces, as {names}.
  const char *words, *remedy;
};
} // namespace

static constexpr Row rows[] = {
    // The file.
    {FindingKind::NodesReordered, "nodes-reordered", Certainty::Stated,
     "nodes were listed before what they read; they are put in order", ""},
    {FindingKind::InputsDropped, "inputs-dropped", Certainty::Stated,
     "only branches that are not taken read {names}: these are no inputs of the model", ""},
    {FindingKind::TrainingsSkipped, "trainings-skipped", Certainty::Stated,
     "the model has {number} training steps; the first one is taken", ""},
    {FindingKind::InitializationSkipped, "initialization-skipped", Certainty::Stated,
     "training starts from the values in the file: its initialization is not run",
     "lowtide-run --init=random:SEED draws fresh ones"},
    {FindingKind::BatchAssumed, "batch-assumed", Certainty::Assumed,
     "inputs of fixed sizes begin with different ones, and no symbol says which counts samples; it is taken to be "
     "{number}{elsewhere}: {names}",
     "say it with --batch={number}, or {other sizes}; a file with a symbolic batch (dynamic_shapes, dynamic_axes) "
     "tells"},
    // What cleaners removed.
    {FindingKind::SignatureRemoved, "signature-removed", Certainty::Inferred,
     "PyTorch's exporter wrote this file, and {a cleaner} removed its list of parameters and buffers: what the program "
     "assigns to buffers, and which tensors it does not train, is not known",
     "compile the exporter's own file: the cleaner is not needed"},
    {FindingKind::NotesRemoved, "notes-removed", Certainty::Inferred,
     "PyTorch's exporter wrote this file, and {a cleaner} removed its notes: what the program detaches, assigns to "
     "buffers, drops within attention or does not train is not known, and not done",
     "compile the exporter's own file: the cleaner is not needed"},
    {FindingKind::NamesOfValues, "names-of-values", Certainty::Inferred,
     "tensors are trained under names that the program does not have, for the exporter evaluated them from parameters, "
     "and nothing tells from which: {names}",
     "compile the exporter's own file: the cleaner is not needed"},
    {FindingKind::PerhapsMerged, "perhaps-merged", Certainty::Assumed,
     "several operations read one tensor, all of whose numbers are equal: perhaps parameters that began equal were "
     "merged; they are trained as one: {names}",
     "compile the exporter's own file: the cleaner is not needed"},
    {FindingKind::DropoutRemoved, "dropout-removed", Certainty::Inferred,
     "a cleaner removed operations that change nothing outside of training, as dropout does; the file holds names of "
     "their results only, and is trained without them: {names}",
     "compile the exporter's own file: the cleaner is not needed"},
    {FindingKind::NormScalesRemoved, "norm-scales-removed", Certainty::Assumed,
     "a cleaner removed the scales of ones or shifts of zeros of group norms; unless the program has none there, its "
     "parameters are not trained: {names}",
     "compile the exporter's own file: the cleaner is not needed"},
    {FindingKind::ArithmeticRemoved, "arithmetic-removed", Certainty::Assumed,
     "a cleaner evaluated sums, products and bounds, or removed them, for they did nothing to the first values of what "
     "they "
     "read; parameters among these (a gate of ones, a log-variance of zeros) are not trained: {names}",
     "compile the exporter's own file: the cleaner is not needed"},
    {FindingKind::LayersScaled, "layers-scaled", Certainty::Stated,
     "a cleaner multiplied weights and biases of layers by what the program multiplies their results by (a scale of a "
     "block), or added to a bias what it adds to the result; training what that gave is training neither: {names}",
     "compile the exporter's own file: the cleaner is not needed"},
    {FindingKind::BiasesPerhapsRemoved, "biases-perhaps-removed", Certainty::Assumed,
     "layers have no bias in a file whose exporter or cleaner drops biases of zeros: if the program has them, they are "
     "not trained: {names}",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::NormsFolded, "norms-folded", Certainty::Inferred,
     "{batch normalizations were} folded into the layers before and cannot be trained: {names}",
     "{export in training form}"},
    {FindingKind::NormsPerhapsFolded, "norms-perhaps-folded", Certainty::Assumed,
     "a cleaner evaluated the weights of convolutions, as it does where it folds a batch normalization into them: if "
     "the program has one there, it cannot be trained: {names}",
     "{export in training form}"},
    {FindingKind::ProjectionsJoined, "projections-joined", Certainty::Inferred,
     "a cleaner joined weights and biases of queries, keys and values; they are trained as one tensor, by another "
     "name and in another order: the same for optimizers that treat each element by itself: {names}",
     "compile the exporter's own file: the fusion is not needed"},
    {FindingKind::ChannelsLast, "channels-last", Certainty::Inferred,
     "onnxruntime moved the channels of convolutions' weights to the end; they are trained so, by another name and in "
     "another order: the same for optimizers that treat each element by itself: {names}",
     "compile the exporter's own file: the fusion is not needed"},
    // What names and values leave open.
    {FindingKind::LayersApart, "layers-apart", Certainty::Assumed,
     "layers that began with equal weights were merged by the exporter; they are trained apart: {names}",
     "tie what the program ties: --rename <its name>=<name of the other>; {or export in training form}"},
    {FindingKind::LayersTied, "layers-tied", Certainty::Assumed,
     "several layers read one evaluated tensor and are trained as tied; perhaps the exporter merged weights that began "
     "equal: {names}",
     "{export in training form}"},
    {FindingKind::EvaluatedTrained, "evaluated-trained", Certainty::Assumed,
     "{number} initializers were evaluated by the exporter, and seem to come from parameters; they are trained: "
     "{names}",
     "{export with do_constant_folding=False}"},
    {FindingKind::EvaluatedNotTrained, "evaluated-not-trained", Certainty::Assumed,
     "{number} initializers were evaluated by the exporter, perhaps from parameters; they are not trained: {names}",
     "{export with do_constant_folding=False}"},
    {FindingKind::EvaluatedWeights, "evaluated-weights", Certainty::Assumed,
     "weights are symmetric, hold each number several times but for its sign, or hold zeros among other numbers: "
     "perhaps the exporter evaluated them from parameters (a mask, w + wᵀ, w and -w); they are trained themselves: "
     "{names}",
     "{export with do_constant_folding=False}"},
    {FindingKind::ConvolutionsFolded, "convolutions-folded", Certainty::Assumed,
     "batch normalization (or what else was computed from the weights) was folded into convolutions and cannot be "
     "trained: {names}",
     "{export in training form}"},
    {FindingKind::NamesGuessed, "names-guessed", Certainty::Assumed,
     "initializer {initializer} and perhaps others were folded by the exporter; their names are guessed",
     "{export with do_constant_folding=False}, or name them: --rename <initializer>=<name>"},
    {FindingKind::FormulasNotTrained, "formulas-not-trained", Certainty::Assumed,
     "tables that formulas wrote, masks of zeros and ones, and frequencies of features are taken for buffers and not "
     "trained: {names}",
     "train what is a parameter: --params=+<initializer>; the exporter that writes notes (dynamo=True) says which are"},
    {FindingKind::SinusoidsNotTrained, "sinusoids-not-trained", Certainty::Assumed,
     "parameters of the program hold sinusoids and are not trained: {names}",
     "train them all the same: --params=+{name}"},
    {FindingKind::CountsNotTrained, "counts-not-trained", Certainty::Assumed,
     "filters that count 0, 1, 2 … (the mean of a distribution over bins) are not trained: {names}",
     "train them all the same: --params=+{name}"},
    {FindingKind::PowersNotTrained, "powers-not-trained", Certainty::Assumed,
     "parameters of the program hold powers of positions (a basis of trends) and are not trained: {names}",
     "train them all the same: --params=+{name}"},
    {FindingKind::ChoicesNotTrained, "choices-not-trained", Certainty::Assumed,
     "parameters of the program hold zeros and ones, as masks and permutations do, and are not trained: {names}",
     "train them all the same: --params=+{name}"},
    {FindingKind::CodesNotTrained, "codes-not-trained", Certainty::Assumed,
     "the exporter evaluated weights of which each line holds whole multiples of one number, as the numbers of codes "
     "in 8 bits or fewer are; they are taken for buffers and not trained: {names}",
     "train them all the same: --params=+{name}; the exporter that writes notes (dynamo=True) keeps weights in their "
     "bits"},
    {FindingKind::ScalesNotTrained, "scales-not-trained", Certainty::Assumed,
     "the program makes the numbers of a weight of codes in 8 bits or fewer; scales and zero points, and what codes "
     "stand for, are taken for buffers and not trained: {names}",
     "train them all the same: --params=+{name}; the exporter that writes notes (dynamo=True) says which are"},
    {FindingKind::BufferWordsNotTrained, "buffer-words-not-trained", Certainty::Assumed,
     "tensors are taken for buffers by their names alone, which neither values nor readers bear out (a mask of two "
     "numbers, a mean that measures inputs), and are not trained: {names}",
     "train what is a parameter: --params=+{name}; the exporter that writes notes (dynamo=True) says which are"},
    {FindingKind::LossWeightNotTrained, "loss-weight-not-trained", Certainty::Assumed,
     "{initializer} only weighs losses; it is taken for a buffer, not trained",
     "train it nevertheless: --params=+{name}"},
    {FindingKind::FrozenNormsNotTrained, "frozen-norms-not-trained", Certainty::Assumed,
     "modules normalize by running statistics without a norm's operator, as frozen norms of detectors do, whose scales "
     "and shifts are buffers; they are not trained: {names}",
     "train what is a parameter: --params=+{name}; the exporter that writes notes (dynamo=True) says which are"},
    {FindingKind::CopiesTrained, "copies-trained", Certainty::Assumed,
     "modules are called as copies and averages of others are, and the file does not tell whether the program trains "
     "them, or detaches what they give; they are taken for parameters, with gradients through them: {names}",
     "keep what the program does not train: --frozen='{name}.*'; the exporter that writes notes (dynamo=True) tells "
     "what "
     "is detached"},
    {FindingKind::BuffersTrained, "buffers-trained", Certainty::Stated,
     "{flag} trains a buffer of the program, which module.parameters() does not give an optimizer: {names}",
     "leave it out to train what the program trains"},
    // What the program lists, and the file lacks or holds in another form.
    {FindingKind::ParametersLost, "parameters-lost", Certainty::Stated,
     "parameters of the program are not in the file, and cannot be trained, unless the program does not use them: "
     "{names}{operations that are gone}",
     "export with optimize=False"},
    {FindingKind::ParametersUnread, "parameters-unread", Certainty::Stated,
     "parameters of the program are not in the file, for it reads nothing under these names, and checkpoints will lack "
     "them: {names}",
     "load checkpoints into the module with strict=False, which keeps its own values there"},
    {FindingKind::FoldedFromOne, "folded-from-one", Certainty::Stated,
     "initializer {initializer} was folded from parameter {parameter} and {what differs}: training it is not training "
     "the parameter",
     "export with optimize=False, or freeze it: --frozen {name}"},
    {FindingKind::FoldedFromSeveral, "folded-from-several", Certainty::Stated,
     "initializer {initializer} was folded from several parameters ({names}): training it is not training them",
     "export with optimize=False, or freeze it: --frozen {name}"},
    {FindingKind::ParametersViewed, "parameters-viewed", Certainty::Inferred,
     "parameters are in the file in the shape and order in which the program views, permutes or joins them, and their "
     "own is not; they are trained alike, and saved so: {names}",
     "export with optimize=False to have their own shape, which adafactor and muon go by"},
    {FindingKind::DimensionsExchanged, "dimensions-exchanged", Certainty::Assumed,
     "parameters are in the file with two of their dimensions exchanged, and nothing says which; they are taken to be "
     "the last two, which a product reads so: {names}",
     "export with optimize=False to have their own shape"},
    {FindingKind::ParametersIndexed, "parameters-indexed", Certainty::Stated,
     "the file holds of parameters no more than what the program takes by index or slice; that is trained, and "
     "saved in its own shape: {names}",
     "export with optimize=False to have them whole"},
    {FindingKind::RowsAtPositions, "rows-at-positions", Certainty::Assumed,
     "tables were evaluated at positions that a buffer of the program held, which the file does not: their rows are "
     "taken to be the first ones, and saved as those: {names}",
     "export with optimize=False"},
    {FindingKind::AssignmentsLost, "assignments-lost", Certainty::Stated,
     "the program assigns buffers, and the exporter dropped what it assigns: they keep the values of the file: {names}",
     "let the program assign a buffer before it reads it, and export with optimize=False"},
    {FindingKind::AssignedEvaluated, "assigned-evaluated", Certainty::Stated,
     "the program assigns buffers, and the exporter evaluated what reads them: the step computes with their first "
     "values for ever: {names}",
     "export with optimize=False"},
    {FindingKind::ParametersFollow, "parameters-follow", Certainty::Assumed,
     "the program assigns parameters, made of others, as a teacher that follows a student: they are updated so, and "
     "not trained: {names}",
     "train them as well: --params=+{name}"},
    {FindingKind::ParametersAssigned, "parameters-assigned", Certainty::Stated,
     "the program assigns parameters in its forward pass, which is no part of the step: they are trained without: "
     "{names}",
     "compute what bounds or scales a parameter from it, without assigning it, and export again"},
    {FindingKind::BuffersNotSaved, "buffers-not-saved", Certainty::Stated,
     "buffers of the program are not in the file, and checkpoints will lack them: {names}",
     "load checkpoints into the module with strict=False"},
    // What was taken apart.
    {FindingKind::TakenApart, "taken-apart", Certainty::Assumed,
     "parameters were taken out of what the exporter evaluated, and the file does not tell everything about them: "
     "{names}",
     "lowtide check says what was assumed; export with optimize=False or do_constant_folding=False"},
    {FindingKind::ElementsLost, "elements-lost", Certainty::Assumed,
     "the exporter took {names} apart and dropped operations that did nothing to the first values of what they read "
     "({operations} of the program): elements that they read are not in the file and not trained, and the file does "
     "not tell the shape of the whole",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::OperationsLost, "operations-lost", Certainty::Assumed,
     "the exporter dropped operations that did nothing to the first values of what they read ({operations} of the "
     "program), perhaps to those of {names}: then these are trained without them",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::AverageFactorAssumed, "average-factor-assumed", Certainty::Assumed,
     "the exporter evaluated {initializer}, a multiple of buffer {buffer}, which the program assigns; its factor is "
     "taken to be one minus {number}, for the file does not tell it",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::JoinedPartAssumed, "joined-part-assumed", Certainty::Assumed,
     "the exporter joined it with a parameter that the file also holds, in {initializer}, and does not tell which of "
     "{names} it is",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::ReaderApart, "reader-apart", Certainty::Assumed,
     "the program computes {value} like {other value} of parameters that began equal, and the exporter merged the two: "
     "it is taken to be computed of {names}",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::CopyTrained, "copy-trained", Certainty::Assumed,
     "{module} and others began as copies of {other module} and others, and the exporter merged the two: both are "
     "trained, for the file does not tell whether the program computes one without gradients (torch.no_grad)",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::HeldParametersRestored, "held-parameters-restored", Certainty::Inferred,
     "penalties in the loss read parameters that the program holds outside of its modules, too (in a list, a "
     "dictionary), and of which the exporter wrote copies; they read the parameters again: {names}",
     ""},
    {FindingKind::HeldParametersCopied, "held-parameters-copied", Certainty::Assumed,
     "the program reads tensors that no module of it holds (in a list, a dictionary), and that equal parameters bit by "
     "bit; they are taken for copies, from which no gradient comes: {names}",
     "where they are the parameters themselves, read them where modules hold them (self.layer.weight)"},
    {FindingKind::HeldParametersLost, "held-parameters-lost", Certainty::Assumed,
     "the program reads tensors that no module of it holds (in a list, a dictionary), and no operation reads the "
     "parameters {names}; where the tensors are those parameters, the file holds copies, which are not trained",
     "read parameters where modules hold them (self.layer.weight)"},
    {FindingKind::LossTermConstant, "loss-term-constant", Certainty::Assumed,
     "a term of the loss is made of constants alone, of tensors that no module of the program holds (in a list, a "
     "dictionary); where they are parameters, as in a penalty, they get no gradient from it: {names}",
     "export with optimize=False, and read parameters where modules hold them (self.layer.weight)"},
    {FindingKind::RestAssumed, "rest-assumed", Certainty::Assumed,
     "initializer {initializer} is also what the program calls {value}, which began equal; that is taken to be 1 - "
     "{image}",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::CopyAssumed, "copy-assumed", Certainty::Assumed,
     "the exporter evaluated {value} and merged it with {initializer}, for the two began equal; it is taken to be "
     "{expression}",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::FunctionPerhapsMerged, "function-perhaps-merged", Certainty::Assumed,
     "initializer {initializer} is also what the program calls {value}: perhaps another function of a parameter, which "
     "began equal and was merged",
     "export with {optimize=False or do_constant_folding=False}"},
    {FindingKind::FunctionMerged, "function-merged", Certainty::Assumed,
     "initializer {initializer} is also what the program calls {value}, another function of a parameter, which began "
     "equal and was merged: trained as it stands, the two would stay equal",
     "export with {optimize=False or do_constant_folding=False}"},
    // Operations.
    {FindingKind::AttentionDropoutLost, "attention-dropout-lost", Certainty::Stated,
     "the program drops attention weights, and the file does not hold them: attention trains without dropout in "
     "{names}",
     "export with optimize=False and an opset_version below 23"},
    {FindingKind::BlockModeUnknown, "block-mode-unknown", Certainty::Assumed,
     "the program computes {names} in a block of torch.autocast or torch.no_grad, and the file does not tell which: "
     "gradients flow through",
     "write .detach() where there are none, and export again"},
    {FindingKind::BlockWithoutGradient, "block-without-gradient", Certainty::Assumed,
     "the program computes {names} in a block of torch.no_grad or torch.autocast, and the file does not tell which: no "
     "gradient flows through",
     "export without torch.autocast(enabled=False) where gradients are to flow"},
    {FindingKind::DetachLost, "detach-lost", Certainty::Assumed,
     "the program detaches values, and the file does not tell which they are: gradients flow through {names}",
     "export with optimize=False"},
    {FindingKind::AssignedPartsDetached, "assigned-parts-detached", Certainty::Assumed,
     "the program writes into parts of buffers, and the file does not tell whether it detaches what it writes; a "
     "buffer "
     "that kept a gradient would end the next step: no gradient flows through {names}",
     "export with optimize=False"},
    {FindingKind::DetachPerhapsAlias, "detach-perhaps-alias", Certainty::Assumed,
     "the program's operations were decomposed (run_decompositions), which makes an alias of what the program "
     "detaches, and of x[...]: gradients flow through {names}",
     "export the program as it was before run_decompositions(), or the module"},
    {FindingKind::DetachedApart, "detached-apart", Certainty::Assumed,
     "the program computes {names} like values after a detach that the exporter removed, and the two were merged: it "
     "is taken not to be detached there, and in a difference of two values, to detach the other",
     "export with optimize=False"},
    {FindingKind::SelfDifferences, "self-differences", Certainty::Assumed,
     "a value and itself are subtracted or divided, as where the program detaches one of the two and its exporter does "
     "not tell: no gradient flows through {names}",
     "export with dynamo=True and optimize=False"},
    {FindingKind::StraightThrough, "straight-through", Certainty::Assumed,
     "the program adds to a value the difference to it of what is made of it, as straight-through estimators do, and "
     "its exporter does not tell that the difference is detached; it is taken to be: {names}",
     "export with dynamo=True, whose notes tell"},
    {FindingKind::NegativePositions, "negative-positions", Certainty::Inferred,
     "the program indexes by several tensors, one of them with negative positions, and its exporter added them up as "
     "if they counted from the start: other elements are read than the program reads (onnxruntime reads the same) for "
     "{names}",
     "count positions from the start, or export with dynamo=True"},
    {FindingKind::PaddingReadOutside, "padding-read-outside", Certainty::Assumed,
     "tables have one row of zeros, as padding has, and are read outside of their modules; what is read by index there "
     "trains the row, and a look-up is taken not to: {names}",
     "export with dynamo=True, whose notes tell"},
    {FindingKind::WindowsRestored, "windows-restored", Certainty::Assumed,
     "the program seems to take windows along a dimension that it counts from the end (unfold(-1, …)), and its "
     "exporter "
     "put their elements where their numbers belong (onnxruntime reads the same); they are put back: {names}",
     "count the dimension from the start, or export with dynamo=True"},
    {FindingKind::SignedDistances, "signed-distances", Certainty::Assumed,
     "roots of sums of powers of differences, as the exporter writes distances (cdist, pairwise_distance), without "
     "their absolute values, which count at these orders: {names}",
     "write (a - b).abs(), or export with dynamo=True"},
    {FindingKind::NormsCumulative, "norms-cumulative", Certainty::Assumed,
     "batch norms keep the statistics of the last batch alone, or none, as where the program averages them over all "
     "batches (momentum=None), for which ONNX has no word: their running statistics are not averaged: {names}",
     "give the norm a momentum, and export again; or compute its statistics after training (update_bn)"},
    {FindingKind::StatisticsEarly, "statistics-early", Certainty::Stated,
     "the program reads running statistics as a batch norm's call left them, and its exporter lets {names} read what "
     "they were before the step",
     "read them before the norm is called, or compute a mean and variance of the batch"},
    {FindingKind::OwnBackwardLost, "own-backward-lost", Certainty::Inferred,
     "the program computes {names} in a torch.autograd.Function, and no file holds its backward pass: the gradient is "
     "that of its forward pass",
     "write it with .detach(): h.detach() * (1 + s) - h * s turns the gradient of h round"},
    {FindingKind::ScatterMeansRestored, "scatter-means-restored", Certainty::Stated,
     "the program takes means of what is scattered to one place (scatter_reduce), and its exporter wrote an operator "
     "that does not; they are put back: {names}",
     "write sums and counts (scatter_add) and their quotient"},
    {FindingKind::PoolDivisorsRestored, "pool-divisors-restored", Certainty::Stated,
     "the program divides what it pools by a number of its own (divisor_override), and its exporter wrote averages "
     "without a word; it is put back: {names}",
     "pool without divisor_override, and multiply by kernel size / divisor"},
    {FindingKind::ReductionsRestored, "reductions-restored", Certainty::Inferred,
     "the exporter took losses that are not reduced for numbers and dropped what reduces them; they are reduced over "
     "all dimensions again: {names}",
     "export with optimize=False to keep the program's own reduction"},
    {FindingKind::EpsilonsRestored, "epsilons-restored", Certainty::Assumed,
     "the exporter dropped the addition of a number of at most 1e-8 in front of operations that need it at zero; "
     "1e-12 in a root of a product, elsewhere 1e-8 is added again: {names}",
     "export with optimize=False to keep the program's own number"},
    {FindingKind::DrawsApart, "draws-apart", Certainty::Inferred,
     "the exporter merged what the program computes of several draws of dropout, or of several runs of a batch norm; "
     "they are drawn apart again: {names}",
     "export with optimize=False"},
    {FindingKind::DrawsUnknown, "draws-unknown", Certainty::Assumed,
     "the exporter merged what the program computes of dropped or normalized values, and the file does not tell "
     "whether of several draws, or of several runs of a batch norm: one is made for {names}",
     "export with optimize=False"},
    {FindingKind::LookUpFrequencyRestored, "look-up-frequency-restored", Certainty::Stated,
     "the program divides gradients of embeddings by how often a row is looked up (scale_grad_by_freq), for which ONNX "
     "has no word; that is put back: {names}",
     "export with scale_grad_by_freq=False to train without it"},
    {FindingKind::LookUpFrequencyLost, "look-up-frequency-lost", Certainty::Stated,
     "the program divides gradients by how often a row is looked up (scale_grad_by_freq), for which ONNX has no word, "
     "and the file does not tell where rows are: it is trained without that in {names}",
     "export with scale_grad_by_freq=False to train so everywhere"},
    {FindingKind::DetachedTwins, "detached-twins", Certainty::Assumed,
     "the exporter merged what the program detaches with what it computes alike of other values, and the file does not "
     "tell what is detached in {names}",
     "export with optimize=False"},
    {FindingKind::LayersRepeated, "layers-repeated", Certainty::Assumed,
     "the program runs layers again on the same values, and the exporter merged the two runs: gradients flow through "
     "both, unless one is without gradients (torch.no_grad), which the file does not tell: {names}",
     "write .detach() in place of torch.no_grad(), and export with optimize=False"},
    {FindingKind::DropoutEvaluated, "dropout-evaluated", Certainty::Assumed,
     "the exporter evaluated the program's dropout of what no input changes, and the file holds one draw of it, which "
     "is read in every step: {names}",
     "export with optimize=False"},
    {FindingKind::LabelSmoothingRestored, "label-smoothing-restored", Certainty::Stated,
     "the exporter left the program's label smoothing out of cross-entropies, and the file alone gives other losses; "
     "it is put back: {names}",
     "export with label_smoothing=0 to train without it"},
};

/// Whether the table has each kind, in the order of the enumeration.
static constexpr bool isComplete() {
  for (size_t i = 0; i != std::size(rows); ++i)
    if (size_t(rows[i].kind) != i)
      return false;
  return std::size(rows) == size_t(FindingKind::LabelSmoothingRestored) + 1;
}
static_assert(isComplete());

StringRef lowtide::stringifyCertainty(Certainty certainty) {
  switch (certainty) {
  case Certainty::Stated:
    return "stated";
  case Certainty::Inferred:
    return "inferred";
  case Certainty::Assumed:
    return "assumed";
  }
  return "";
}

StringRef lowtide::stringifyFindingKind(FindingKind kind) { return rows[size_t(kind)].name; }

Certainty lowtide::getCertainty(FindingKind kind) { return rows[size_t(kind)].certainty; }

/// `words` with its places filled.
static std::string fill(StringRef words, const Finding &finding) {
  std::string text;
  while (!words.empty()) {
    auto [plain, rest] = words.split('{');
    text += plain;
    if (plain.size() == words.size())
      break;
    auto [place, after] = rest.split('}');
    auto given = llvm::find_if(finding.places, [&](const auto &other) { return other.first == place; });
    assert((given != finding.places.end() || place == "names") && "nothing stands at a place of a finding's words");
    if (given != finding.places.end())
      text += given->second;
    else if (place == "names")
      text += llvm::join(finding.names, ", ");
    words = after;
  }
  return text;
}

std::string Finding::describe() const { return fill(rows[size_t(kind)].words, *this); }

std::string Finding::describeRemedy() const { return fill(rows[size_t(kind)].remedy, *this); }

/// Words as Markdown, places in italics.
static std::string print(StringRef words) {
  std::string text;
  for (char c : words) {
    if (c == '{' || c == '}')
      text += '*';
    else if (StringRef("<>*|_").contains(c))
      text += std::string("\\") + c;
    else
      text += c;
  }
  return text.empty() ? "–" : text;
}

void lowtide::printFindings(llvm::raw_ostream &os) {
  os << "| kind | certainty | what is said | what helps |\n| --- | --- | --- | --- |\n";
  for (const Row &row : rows)
    os << "| `" << row.name << "` | " << stringifyCertainty(row.certainty) << " | " << print(row.words) << " | "
       << print(row.remedy) << " |\n";
}
