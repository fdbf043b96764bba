"""onnxruntime's fused operators against onnxruntime: contrib_tests.py <folder of binaries> [--only=PART]; `onnx` environment.

Each row of CASES is an operator of the domain com.microsoft (or one that onnxruntime keeps in the standard domain) with
attributes and operands. It is compiled as an evaluation step for the CPU, run once, and compared with onnxruntime's kernel;
operators that onnxruntime implements for GPUs only are compared with standard operators that define them (DEFINED).
Prints case -> [state, reason].
"""

import argparse
import json
import math
import pathlib
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from node_tests import attempt
from onnx import TensorProto, helper, numpy_helper

OPSET, MICROSOFT = 17, "com.microsoft"
FLOAT, INT32, INT64, UINT8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8
# kind of codes -> (type, the first one, and how many there are)
CODES = {"int4": (TensorProto.INT4, -8, 16), "uint4": (TensorProto.UINT4, 0, 16), "uint8": (UINT8, 0, 256)}
# The operator set that has types of 4 bits.
CODES_OPSET = 21
# Sums are taken in another order than onnxruntime's, and its activations are polynomials.
TOLERANCE = (2e-4, 2e-5)


def normal(*shape):
    return ("normal", shape)


def ids(limit, *shape):
    return ("ids", shape, limit)


def positive(*shape):
    return ("positive", shape)


def codes(kind, *shape):
    """An initializer of integers of `kind`, of which bytes hold several."""
    return ("codes", shape, kind)


def fixed(values, dtype="int32"):
    return ("fixed", numpy.array(values, dtype))


B, T, H, N = 2, 5, 24, 3
ROTARY = [normal(B, T, H), fixed([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]], "int64"), normal(7, 4), normal(7, 4)]
EMBED = [ids(9, B, T), ids(2, B, T), normal(9, 8), normal(6, 8), normal(2, 8), normal(8), normal(8)]
MHA = [normal(B, T, H), normal(B, 6, H), normal(B, 6, H)]

# name -> (operator, domain, attributes, operands (None: absent), number of results)
CASES = {
    # Of updates of one place onnxruntime, as PyTorch's scatter, keeps the last.
    "scatter, places repeat": ("ScatterElements", "", {"axis": 1}, [normal(2, 5), fixed([[1, 1, 4, 1], [0, 3, 3, 0]], "int64"), normal(2, 4)], 1),
    "scatter of rows, places repeat": ("ScatterND", "", {}, [normal(4, 3), fixed([[2], [0], [2], [2]], "int64"), normal(4, 3)], 1),
    "gelu": ("Gelu", MICROSOFT, {}, [normal(3, 7)], 1),
    "bias_gelu": ("BiasGelu", MICROSOFT, {}, [normal(2, 3, 7), normal(7)], 1),
    "fast_gelu": ("FastGelu", MICROSOFT, {}, [normal(3, 7)], 1),
    "fast_gelu_bias": ("FastGelu", MICROSOFT, {}, [normal(3, 7), normal(7)], 1),
    "quick_gelu": ("QuickGelu", MICROSOFT, {}, [normal(3, 7)], 1),
    "quick_gelu_alpha": ("QuickGelu", MICROSOFT, {"alpha": 1.0}, [normal(3, 7)], 1),
    "matmul": ("FusedMatMul", MICROSOFT, {"alpha": 0.5}, [normal(2, 3, 4), normal(2, 4, 5)], 1),
    "matmul_trans_a": ("FusedMatMul", MICROSOFT, {"transA": 1}, [normal(2, 4, 3), normal(4, 5)], 1),
    "matmul_trans_b": ("FusedMatMul", MICROSOFT, {"transB": 1, "alpha": 2.0}, [normal(2, 3, 4), normal(2, 5, 4)], 1),
    "matmul_trans_batch_a": ("FusedMatMul", MICROSOFT, {"transBatchA": 1}, [normal(3, 2, 6, 4), normal(2, 6, 4, 5)], 1),
    "matmul_trans_batch_b": ("FusedMatMul", MICROSOFT, {"transBatchB": 1, "transB": 1}, [normal(2, 3, 4), normal(5, 2, 4)], 1),
    "transpose_matmul": ("TransposeMatMul", MICROSOFT, {"transA": 1}, [normal(4, 3), normal(4, 5)], 1),
    "gemm_relu": ("FusedGemm", MICROSOFT, {"activation": "Relu", "transB": 1}, [normal(3, 4), normal(5, 4), normal(5)], 1),
    "gemm_leaky": ("FusedGemm", MICROSOFT, {"activation": "LeakyRelu", "activation_alpha": 0.2, "alpha": 0.5}, [normal(3, 4), normal(4, 5), normal(3, 5)], 1),
    "conv_relu": ("FusedConv", MICROSOFT, {"activation": "Relu", "pads": [1, 1, 1, 1]}, [normal(2, 3, 6, 6), normal(4, 3, 3, 3), normal(4)], 1),
    "conv_clip": ("FusedConv", MICROSOFT, {"activation": "Clip", "activation_params": [-0.5, 0.75]}, [normal(2, 4, 6, 6), normal(4, 4, 3, 3), normal(4)], 1),
    "conv_sum": ("FusedConv", MICROSOFT, {"activation": "Relu", "group": 2}, [normal(2, 4, 5, 5), normal(6, 2, 2, 2), normal(6), normal(2, 6, 4, 4)], 1),
    "conv_hard_sigmoid": ("FusedConv", MICROSOFT, {"activation": "HardSigmoid", "activation_params": [0.2, 0.5]}, [normal(2, 3, 5, 5), normal(4, 3, 2, 2)], 1),
    "conv_tanh": ("FusedConv", MICROSOFT, {"activation": "Tanh", "strides": [2, 2]}, [normal(2, 3, 5, 5), normal(4, 3, 2, 2), normal(4)], 1),
    "conv_sigmoid": ("FusedConv", MICROSOFT, {"activation": "Sigmoid"}, [normal(2, 3, 5, 5), normal(4, 3, 2, 2)], 1),
    "rms_norm": ("SimplifiedLayerNormalization", "", {"axis": -1, "epsilon": 1e-5}, [normal(2, 3, 8), normal(8)], 1),
    "skip_norm": ("SkipLayerNormalization", MICROSOFT, {"epsilon": 1e-5}, [normal(B, T, 8), normal(B, T, 8), normal(8), normal(8), normal(8)], 4),
    "skip_norm_plain": ("SkipLayerNormalization", MICROSOFT, {}, [normal(B, T, 8), normal(B, T, 8), normal(8)], 1),
    "skip_norm_broadcast": ("SkipLayerNormalization", MICROSOFT, {}, [normal(B, T, 8), normal(1, T, 8), normal(8), normal(8)], 1),
    "skip_rms_norm": ("SkipSimplifiedLayerNormalization", MICROSOFT, {"epsilon": 1e-5}, [normal(B, T, 8), normal(B, T, 8), normal(8)], 4),
    "skip_rms_norm_bias": ("SkipSimplifiedLayerNormalization", MICROSOFT, {}, [normal(B, T, 8), normal(B, T, 8), normal(8), normal(8)], 1),
    "embed": ("EmbedLayerNormalization", MICROSOFT, {"epsilon": 1e-5}, EMBED, 1),
    "embed_no_segments": ("EmbedLayerNormalization", MICROSOFT, {}, [EMBED[0], None, EMBED[2], EMBED[3], None, *EMBED[5:]], 1),
    "embed_positions": ("EmbedLayerNormalization", MICROSOFT, {}, [*EMBED, None, ids(6, B, T)], 1),
    "embed_mask": ("EmbedLayerNormalization", MICROSOFT, {}, [*EMBED, fixed([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])], 2),
    "trilu": ("Trilu", MICROSOFT, {"upper": 0}, [normal(2, 5, 5)], 1),
    "rotary": ("RotaryEmbedding", MICROSOFT, {}, ROTARY, 1),
    "rotary_offset": ("RotaryEmbedding", MICROSOFT, {}, [ROTARY[0], fixed([2], "int64"), *ROTARY[2:]], 1),
    "rotary_interleaved": ("RotaryEmbedding", MICROSOFT, {"interleaved": 1}, ROTARY, 1),
    "rotary_heads": ("RotaryEmbedding", MICROSOFT, {}, [normal(B, N, T, 8), *ROTARY[1:]], 1),
    "rotary_part": ("RotaryEmbedding", MICROSOFT, {"num_heads": 2, "rotary_embedding_dim": 8}, ROTARY, 1),
    "attention": ("Attention", MICROSOFT, {"num_heads": N}, [normal(B, T, 10), normal(10, 3 * H), normal(3 * H)], 1),
    "attention_causal": ("Attention", MICROSOFT, {"num_heads": N, "unidirectional": 1}, [normal(B, T, 10), normal(10, 3 * H), normal(3 * H)], 1),
    "attention_scale": ("Attention", MICROSOFT, {"num_heads": N, "scale": 0.3}, [normal(B, T, 10), normal(10, 3 * H), normal(3 * H)], 1),
    "attention_sizes": ("Attention", MICROSOFT, {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 12]}, [normal(B, T, 10), normal(10, 28), normal(28)], 1),
    "attention_mask": ("Attention", MICROSOFT, {"num_heads": N}, [normal(B, T, 10), normal(10, 3 * H), normal(3 * H), fixed([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])], 1),
    "attention_lengths": ("Attention", MICROSOFT, {"num_heads": N}, [normal(B, T, 10), normal(10, 3 * H), normal(3 * H), fixed([3, 5])], 1),
    "attention_bias": ("Attention", MICROSOFT, {"num_heads": N}, [normal(B, T, 10), normal(10, 3 * H), normal(3 * H), None, None, normal(B, N, T, T)], 1),
    "mha": ("MultiHeadAttention", MICROSOFT, {"num_heads": N}, MHA, 1),
    "mha_bias": ("MultiHeadAttention", MICROSOFT, {"num_heads": N}, [*MHA, normal(3 * H)], 1),
    "mha_mask": ("MultiHeadAttention", MICROSOFT, {"num_heads": N}, [*MHA, None, fixed([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])], 1),
    "mha_scores": ("MultiHeadAttention", MICROSOFT, {"num_heads": N, "scale": 0.2}, [*MHA, None, None, normal(1, N, T, 6)], 1),
    "mha_causal": ("MultiHeadAttention", MICROSOFT, {"num_heads": N, "unidirectional": 1}, [normal(B, T, H)] * 3, 1),
    "matmul_4_bits": ("MatMulNBits", MICROSOFT, {"K": 64, "N": 12, "bits": 4, "block_size": 32}, [normal(3, 64), codes("uint8", 12, 2, 16), positive(24)], 1),
    "matmul_4_bits_zero": ("MatMulNBits", MICROSOFT, {"K": 96, "N": 12, "bits": 4, "block_size": 32}, [normal(2, 3, 96), codes("uint8", 12, 3, 16), positive(36), codes("uint8", 24)], 1),
    "matmul_4_bits_cut": ("MatMulNBits", MICROSOFT, {"K": 80, "N": 12, "bits": 4, "block_size": 32}, [normal(3, 80), codes("uint8", 12, 3, 16), positive(36)], 1),
    "matmul_4_bits_float": ("MatMulNBits", MICROSOFT, {"K": 64, "N": 12, "bits": 4, "block_size": 16}, [normal(3, 64), codes("uint8", 12, 4, 8), positive(48), normal(48)], 1),
    "matmul_4_bits_bias": ("MatMulNBits", MICROSOFT, {"K": 64, "N": 12, "bits": 4, "block_size": 32}, [normal(3, 64), codes("uint8", 12, 2, 16), positive(24), None, None, normal(12)], 1),
    "matmul_2_bits": ("MatMulNBits", MICROSOFT, {"K": 64, "N": 12, "bits": 2, "block_size": 32}, [normal(3, 64), codes("uint8", 12, 2, 8), positive(24)], 1),
    "matmul_8_bits": ("MatMulNBits", MICROSOFT, {"K": 64, "N": 12, "bits": 8, "block_size": 32}, [normal(3, 64), codes("uint8", 12, 2, 32), positive(24)], 1),
    "matmul_nf4": ("MatMulBnb4", MICROSOFT, {"K": 64, "N": 12, "block_size": 64, "quant_type": 1}, [normal(3, 64), codes("uint8", 384), positive(12)], 1),
    "matmul_fp4": ("MatMulBnb4", MICROSOFT, {"K": 64, "N": 12, "block_size": 32, "quant_type": 0}, [normal(3, 64), codes("uint8", 384), positive(24)], 1),
    "table_4_bits": ("GatherBlockQuantized", MICROSOFT, {"block_size": 16}, [codes("int4", 9, 32), ids(9, B, T), positive(9, 2)], 1),
    "table_4_bits_zero": ("GatherBlockQuantized", MICROSOFT, {"block_size": 16}, [codes("uint4", 9, 32), ids(9, B, T), positive(9, 2), codes("uint4", 9, 2)], 1),
    "table_bytes": ("GatherBlockQuantized", MICROSOFT, {"block_size": 16, "bits": 4}, [codes("uint8", 9, 16), ids(9, B, T), positive(9, 2)], 1),
    "weights_int4": ("DequantizeLinear", "", {"axis": 0, "block_size": 16}, [codes("int4", 64, 6), positive(4, 6)], 1),
    "weights_uint4_zero": ("DequantizeLinear", "", {"axis": 1, "block_size": 32}, [codes("uint4", 6, 64), positive(6, 2), codes("uint4", 6, 2)], 1),
    "weights_int4_odd": ("DequantizeLinear", "", {"axis": 1}, [codes("int4", 5, 3), positive(3), codes("int4", 3)], 1),
    "mha_cross": ("MultiHeadAttention", MICROSOFT, {"num_heads": N}, [normal(B, T, H), normal(B, N, 6, 8), normal(B, N, 6, 8)], 1),
}  # fmt: skip

# name -> (operator, attributes, operands, number of results, the same in standard operators; operands are x0, x1 …, results y0 …)
DEFINED = {
    "matmul_relu": ("FusedMatMulActivation", {"activation": "Relu", "transB": 1, "alpha": 0.5}, [normal(2, 3, 4), normal(5, 4)], 1, """
        w = Transpose(x1)
        p = MatMul(x0, w)
        h = Constant<value = float {0.5}>()
        a = Mul(p, h)
        y0 = Relu(a)"""),
    "nhwc_conv": ("NhwcConv", {"pads": [1, 1, 1, 1], "group": 2}, [normal(2, 6, 5, 4), normal(6, 3, 3, 2), normal(6)], 1, """
        x = Transpose<perm = [0, 3, 1, 2]>(x0)
        w = Transpose<perm = [0, 3, 1, 2]>(x1)
        y = Conv<pads = [1, 1, 1, 1], group = 2>(x, w, x2)
        y0 = Transpose<perm = [0, 2, 3, 1]>(y)"""),
    "group_norm": ("GroupNorm", {"groups": 2, "activation": 1, "epsilon": 1e-3}, [normal(2, 4, 5, 6), normal(6), normal(6)], 1, """
        x = Transpose<perm = [0, 3, 1, 2]>(x0)
        n = GroupNormalization<num_groups = 2, epsilon = 0.001>(x, x1, x2)
        s = Sigmoid(n)
        y = Mul(n, s)
        y0 = Transpose<perm = [0, 2, 3, 1]>(y)"""),
    "group_norm_first": ("GroupNorm", {"groups": 3, "channels_last": 0}, [normal(2, 6, 5, 4), normal(6), normal(6)], 1, """
        y0 = GroupNormalization<num_groups = 3>(x0, x1, x2)"""),
    "skip_group_norm": ("SkipGroupNorm", {"groups": 2}, [normal(2, 4, 5, 6), normal(6), normal(6), normal(2, 1, 1, 6), normal(6)], 2, """
        a = Add(x0, x3)
        y1 = Add(a, x4)
        x = Transpose<perm = [0, 3, 1, 2]>(y1)
        n = GroupNormalization<num_groups = 2>(x, x1, x2)
        y0 = Transpose<perm = [0, 2, 3, 1]>(n)"""),
    "bias_add": ("BiasAdd", {}, [normal(2, 3, 8), normal(8), normal(2, 3, 8)], 1, """
        a = Add(x0, x1)
        y0 = Add(a, x2)"""),
    "bias_split_gelu": ("BiasSplitGelu", {}, [normal(2, 3, 8), normal(8)], 1, """
        a = Add(x0, x1)
        l, r = Split<axis = -1, num_outputs = 2>(a)
        g = Gelu(r)
        y0 = Mul(l, g)"""),
    "mha_packed": ("MultiHeadAttention", {"num_heads": 3}, [normal(2, 5, 3, 3, 8)], 1, """
        k, v, w = Split<axis = 3, num_outputs = 3>(x0)
        three = Constant<value = int64[1] {3}>()
        q3 = Squeeze(k, three)
        k3 = Squeeze(v, three)
        v3 = Squeeze(w, three)
        qh = Transpose<perm = [0, 2, 1, 3]>(q3)
        kh = Transpose<perm = [0, 2, 3, 1]>(k3)
        vh = Transpose<perm = [0, 2, 1, 3]>(v3)
        s = MatMul(qh, kh)
        root = Constant<value = float {0.35355339}>()
        t = Mul(s, root)
        p = Softmax(t)
        o = MatMul(p, vh)
        f = Transpose<perm = [0, 2, 1, 3]>(o)
        flat = Constant<value = int64[3] {2, 5, 24}>()
        y0 = Reshape(f, flat)"""),
}  # fmt: skip
TYPES = {"float32": FLOAT, "int32": INT32, "int64": INT64}


def is_packed(operands):
    return any(operand and operand[0] == "codes" for operand in operands)


def arrays_of(operands, name):
    random = numpy.random.default_rng(sum(map(ord, name)))
    arrays = {}
    for i, operand in enumerate(operands):
        if operand is None:
            continue
        kind, *rest = operand
        if kind == "codes":
            continue
        if kind == "positive":
            arrays[f"x{i}"] = (random.random(rest[0]) * 0.02 + 0.005).astype("float32")
        elif kind == "normal":
            arrays[f"x{i}"] = random.standard_normal(rest[0]).astype("float32")
        elif kind == "ids":
            arrays[f"x{i}"] = random.integers(0, rest[1], rest[0]).astype("int32")
        else:
            arrays[f"x{i}"] = rest[0]
    return arrays


def build(op, domain, attributes, operands, results, arrays, opset):
    inputs = [helper.make_tensor_value_info(n, TYPES[str(a.dtype)], a.shape) for n, a in arrays.items()]
    names = ["" if operand is None else f"x{i}" for i, operand in enumerate(operands)]
    # Of several results, those between the first and the last are statistics.
    outputs = [f"y{i}" if i in (0, results - 1) else "" for i in range(results)]
    # The index of a mask is listed even where nothing reads it.
    embeds = op == "EmbedLayerNormalization"
    listed = [*outputs, "mask_index"] if embeds and results == 1 else outputs
    node = helper.make_node(op, names, listed, name=op, domain=domain, **attributes)
    info = [helper.make_tensor_value_info(n, INT32 if embeds and n == "y1" else FLOAT, None) for n in outputs if n]
    random, held = numpy.random.default_rng(7), []
    for i, operand in enumerate(operands):
        if operand and operand[0] == "codes":
            kind, first, count = CODES[operand[2]]
            held.append(helper.make_tensor(f"x{i}", kind, operand[1], random.integers(first, first + count, math.prod(operand[1]))))
    # Scales of such weights are the file's, too.
    if held:
        held += [numpy_helper.from_array(a, n) for n, a in arrays.items() if operands[int(n[1:])][0] == "positive"]
        inputs = [i for i in inputs if i.name not in {t.name for t in held}]
    graph = helper.make_graph([node], "contrib", inputs, info, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)], ir_version=10)


def define(text, model):
    """The model with its node replaced by the standard operators in `text`."""
    body = onnx.parser.parse_graph("g () => () {" + text + "\n}")
    defined = onnx.ModelProto.FromString(model.SerializeToString())
    del defined.graph.node[:]
    defined.graph.node.extend(body.node)
    return defined


def judge(binaries, name):
    if name in CASES:
        op, domain, attributes, operands, results = CASES[name]
        definition, opset = "", CODES_OPSET if is_packed(operands) else OPSET
    else:
        op, attributes, operands, results, definition = DEFINED[name]
        domain, opset = MICROSOFT, 21
    arrays = arrays_of(operands, name)
    model = build(op, domain, attributes, operands, results, arrays, opset)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    if is_packed(operands):
        # Its optimizer would round activations to integers.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        arrays = {n: a for n, a in arrays.items() if n in {i.name for i in model.graph.input}}
    oracle = define(definition, model) if definition else model
    session = onnxruntime.InferenceSession(oracle.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, arrays)))
    # Integers that steer the operator are constants in real files, and so are tables.
    with tempfile.TemporaryDirectory(prefix="lowtide-contrib-") as scratch:
        return attempt(binaries, model, arrays, outputs, pathlib.Path(scratch), TOLERANCE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args()
    names = [n for n in [*CASES, *DEFINED] if options.only in n]
    json.dump({n: judge(options.binaries.resolve(), n) for n in names}, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
