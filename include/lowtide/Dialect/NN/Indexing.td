// nn: reading and adding at positions that a tensor of indices names.
#ifndef LOWTIDE_NN_INDEXING
#define LOWTIDE_NN_INDEXING

include "lowtide/Dialect/NN/NNBase.td"

// Indices are signed integers in [0, extent). One outside reads NaN (integers: 0) and adds nothing: never memory that
// is not ours, and never a plausible number.
class NN_Indexing<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<ElementInterface>,
                                           DeclareOpInterfaceMethods<DifferentiableInterface>])> {
  let family = "Indexing";
  let results = (outs NN_Tensor:$y);
  let hasVerifier = 1;
}

def NN_GatherOp : NN_Indexing<"gather"> {
  let split = "Gather";
  let summary = "y[a…, i…, b…] = x[a…, indices[i…], b…], the index standing at `axis`";
  let batch = "Movement";
  let flopsPerElement = 0;
  let description = [{The gradient of slice `untrained_row` of x is zero, however often it is read (padding of embeddings).}];
  let onnx = "Gather";
  let arguments = (ins NN_Tensor:$x, NN_IntTensor:$indices, I64Attr:$axis, OptionalAttr<I64Attr>:$untrained_row);
  let assemblyFormat = "$x `[` $indices `]` `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
}

def NN_GatherElementsOp : NN_Indexing<"gather_elements"> {
  let split = "GatherElements";
  let summary = "y[i] = x[i with indices[i] at `axis`]";
  let batch = "Movement";
  let flopsPerElement = 0;
  let onnx = "GatherElements";
  let arguments = (ins NN_Tensor:$x, NN_IntTensor:$indices, I64Attr:$axis);
  let assemblyFormat = "$x `[` $indices `]` `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
}

def NN_ScatterAddOp : NN_Indexing<"scatter_add", [DeclareOpInterfaceMethods<ScatterInterface>]> {
  let split = "ScatterAdd";
  let summary = "adds updates[a…, i…, b…] to y[a…, indices[i…], b…], starting from zeros: gather transposed";
  let batch = "Contract";
  let precision = "High";
  let flops = [{ return ::lowtide::nn::countElements(getUpdates().getType()); }];
  let arguments = (ins NN_IntTensor:$indices, NN_Tensor:$updates, I64Attr:$axis);
  let assemblyFormat = "`[` $indices `]` $updates `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
}

def NN_ScatterElementsAddOp : NN_Indexing<"scatter_elements_add", [DeclareOpInterfaceMethods<ScatterInterface>]> {
  let split = "ScatterElementsAdd";
  let summary = "adds updates[i] to y[i with indices[i] at `axis`], starting from zeros: gather_elements transposed";
  let batch = "Contract";
  let precision = "High";
  let flops = [{ return ::lowtide::nn::countElements(getUpdates().getType()); }];
  let arguments = (ins NN_IntTensor:$indices, NN_Tensor:$updates, I64Attr:$axis);
  let assemblyFormat = "`[` $indices `]` $updates `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
}

def NN_SelectRowsOp : NN_Op<"select_rows", [DeclareOpInterfaceMethods<DecomposableInterface>]> {
  let split = "SelectRows";
  let summary = "numbers of the rows for which `condition` holds, in order, then the first of them again; and how many are there";
  let description = [{
    `condition` says it of n rows; `rows` are the numbers of their elements, where each row has m: rows[k·m + j] = m · (number
    of row k of those that hold) + j. valid[k] says whether there is a row k. Without any, all numbers are those of row 0.
    An op of its own so that a step on parts of a batch selects in each part among its own rows.
  }];
  let family = "Indexing";
  let batch = "Couples";
  let flops = [{ return 4 * ::lowtide::nn::countElements(getCondition().getType()); }];
  let arguments = (ins NN_BoolTensor:$condition);
  let results = (outs NN_IntTensor:$rows, NN_BoolTensor:$valid);
  let assemblyFormat = "$condition attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif
