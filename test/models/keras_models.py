"""Make keras-tiny again: keras_models.py, where Keras 3, TensorFlow and tf2onnx are installed (nothing else here needs them).

Keras trains the model in f64 (the truth) and in f32; tf2onnx writes the file that `Model.export(format="onnx")` writes, too.
The record is that of recording.py, under the names of the file's tensors.
"""

import json
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy
import onnx
import tensorflow
import tf2onnx
from keras import layers

HERE = pathlib.Path(__file__).resolve().parent
BATCH, STEPS, LENGTH, WORDS, CLASSES, LR = 8, 12, 12, 30, 4, 0.1
NUDGES = (None, 1, 2, 3)


def build():
    """What tf2onnx evaluates (a bias along another dimension), joins (a bias and zeros), merges (two norms' scales of ones)."""
    x = layers.Input((LENGTH,), dtype="int32", name="x")
    h = layers.Embedding(WORDS, 16)(x)
    h = layers.LayerNormalization()(h + layers.MultiHeadAttention(2, 8)(h, h))
    h = layers.LayerNormalization()(h + layers.Conv1D(16, 3, padding="same", activation="swish")(h))
    h = layers.LSTM(8)(h)
    return keras.Model(x, layers.Dense(CLASSES, activation="softmax", name="classes")(h))


def initial(model):
    """Scales stay ones, as in any new model; other variables move off zero, or TensorFlow takes them out of the graph."""
    rng = numpy.random.default_rng(1)
    moved = lambda v: 0.05 * rng.standard_normal(v.shape) if v.path.split("/")[-1] != "gamma" else 0  # noqa: E731
    return [(v.numpy() + moved(v)).astype(numpy.float32) for v in model.trainable_variables]


def train(dtype, weights, data, nudge=None):
    keras.config.set_dtype_policy(dtype)
    model = build()
    rng = numpy.random.default_rng(nudge)
    for variable, value in zip(model.trainable_variables, weights):
        step = 0 if nudge is None else 6e-8 * rng.standard_normal(value.shape)
        variable.assign(tensorflow.cast(value.astype(dtype) * (1 + step), dtype))
    losses, norms, first = [], [], None
    for i in range(STEPS):
        rows = slice(i * BATCH % len(data["x"]), i * BATCH % len(data["x"]) + BATCH)
        with tensorflow.GradientTape() as tape:
            each = keras.losses.sparse_categorical_crossentropy(data["labels"][rows], model(data["x"][rows], training=True))
            loss = tensorflow.reduce_mean(each)
        gradients = [tensorflow.convert_to_tensor(g).numpy() for g in tape.gradient(loss, model.trainable_variables)]
        first = first or gradients
        losses.append(float(loss))
        norms.append(float(numpy.sqrt(sum((g.astype("f8") ** 2).sum() for g in gradients))))
        for variable, gradient in zip(model.trainable_variables, gradients):
            variable.assign_sub(LR * gradient)
    return losses, norms, first, [v.numpy() for v in model.trainable_variables], model


def gates_first(value):
    """[…, 4 · hidden] in Keras's order i f c o -> [1, 4 · hidden, …] in ONNX's, i o f c."""
    i, f, c, o = numpy.split(value.T, 4)
    return numpy.concatenate([i, o, f, c])[None]


def find_forms(file, model, weights):
    """(name of the file's tensor, form that it has there) of each variable."""
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in file.graph.initializer}
    forms = []
    for variable, value in zip(model.trainable_variables, weights):
        layer, leaf = variable.path.split("/")[-2:]
        if layer == "lstm_cell":
            kind = {"kernel": "W0", "recurrent_kernel": "R0", "bias": "B0"}[leaf]
            (name,) = (n for n in tensors if n.startswith(kind))
            forms.append((name + "/bias" if leaf == "bias" else name, gates_first))
        elif leaf == "gamma":
            # tf2onnx kept one of both; the other's readers tell whose it was.
            (name,) = (n for n in tensors if "layer_normalization" in n and (tensors[n] == 1).all())
            scopes = sorted({n.name.rsplit("/", 1)[0] for n in file.graph.node if name in n.input}, key=lambda s: (len(s), s))
            scope = scopes[0 if layer == "layer_normalization" else 1]
            forms.append((scope + "/" + name.rsplit("/", 1)[1], lambda v, shape=tensors[name].shape: v.reshape(shape)))
        else:
            forms.append(find_form(tensors, value, variable.path))
    return forms


def find_form(tensors, value, path):
    matrix = value.reshape(-1, value.shape[-1])
    for turn in (lambda v: v, lambda v: v.reshape(matrix.shape).T, lambda v: numpy.moveaxis(v, (0, 1, 2), (2, 1, 0)) if v.ndim == 3 else v):
        for name, tensor in tensors.items():
            if tensor.size == value.size and numpy.array_equal(tensor.ravel(), turn(value).ravel()):
                return name, lambda v, turn=turn, shape=tensor.shape: turn(v).reshape(shape)
    raise SystemExit(f"error: the file does not hold {path}")


def main():
    folder = HERE / "keras-tiny"
    folder.mkdir(exist_ok=True)
    rng = numpy.random.default_rng(0)
    data = {"x": rng.integers(0, WORDS, (32, LENGTH)).astype(numpy.int32)}
    data["labels"] = (data["x"].sum(1) % CLASSES).astype(numpy.int64)
    keras.utils.set_random_seed(0)
    weights = initial(build())
    truth, norms, gradients, final, _ = train("float64", weights, data)
    runs = [train("float32", weights, data, nudge) for nudge in NUDGES]
    keras.config.set_dtype_policy("float32")
    keras.utils.clear_session()
    model = build()
    model.set_weights(weights)
    signature = [tensorflow.TensorSpec((None, LENGTH), tensorflow.int32, name="x")]
    file, _ = tf2onnx.convert.from_keras(model, signature, opset=17, output_path=str(folder / "model.onnx"))
    forms = find_forms(file, model, weights)

    def band(column, exact, factor, relative):
        worst, out = 0.0, []
        for t, reference in enumerate(exact):
            worst = max([worst, *(abs(r[column][t] - reference) for r in runs)])
            out.append(factor * worst + relative * abs(reference))
        return out

    names = [name for name, _ in forms]
    largest = lambda a: float(numpy.abs(a).max())  # noqa: E731
    expected = {
        "loss": {"f64": truth, "f32": runs[0][0], "f32_tolerance": band(0, truth, 10, 2e-6)},
        "grad_norm": {"f64": norms, "f32": runs[0][1], "f32_tolerance": band(1, norms, 10, 1e-5)},
        "grad_step0_f32_error": {n: largest(runs[0][2][i] - g) / largest(g) for i, (n, g) in enumerate(zip(names, gradients))},
        "final_f32_tolerance": {
            n: 10 * max(largest(r[3][i] - w) for r in runs) + 2e-6 * largest(w) for i, (n, w) in enumerate(zip(names, final))
        },
    }  # fmt: skip
    arrays = {f"grad/{n}": form(g).astype("f4") for (n, form), g in zip(forms, gradients)}
    arrays |= {f"final/{n}": form(w).astype("f4") for (n, form), w in zip(forms, final)}
    kinds = sorted({n.op_type for n in file.graph.node})
    entry = {
        "exporter": "tf2onnx", "file": "model.onnx", "opset": file.opset_import[0].version, "ir": file.ir_version,
        "ops": len(file.graph.node), "kinds": kinds,
    }  # fmt: skip
    record = {
        "batch": BATCH, "steps": STEPS, "optimizer": "sgd", "options": {"lr": LR},
        "loss": {"kind": "nll", "logits": file.graph.output[0].name, "labels": "labels"},
        "parameters": sum(w.size for w in weights), "data": {k: [str(v.dtype), list(v.shape)] for k, v in data.items()},
        "keras": keras.__version__, "files": [entry],
    }  # fmt: skip
    numpy.savez_compressed(folder / "data.npz", **data)
    numpy.savez_compressed(folder / "expected.npz", **arrays)
    for name, value in (("train.json", record), ("expected.json", expected)):
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")
    print(f"keras-tiny: {truth[0]:.4f} -> {truth[-1]:.4f}, {record['parameters']} parameters")


if __name__ == "__main__":
    main()
