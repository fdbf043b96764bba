"""A model of 25 recurrent layers, each of which has three tensors that an exporter evaluated from its parameters."""

layers = range(25)
tensors, nodes = [], []
for i in layers:
    tensors.append(f'float[1,4,1] "onnx::LSTM_{3 * i}" = {{1, 2, 3, {i}}}, float[1,4,1] "onnx::LSTM_{3 * i + 1}" = {{5, 6, 7, {i}}}')
    tensors.append(f'float[1,8] "onnx::LSTM_{3 * i + 2}" = {{1, 2, 3, 4, 11, 12, 13, {i}}}')
    before = "x" if i == 0 else f"s{i - 1}"
    nodes.append(f'["/rnn{i}/LSTM"] h{i} = LSTM<hidden_size = 1>({before}, "onnx::LSTM_{3 * i}", "onnx::LSTM_{3 * i + 1}", "onnx::LSTM_{3 * i + 2}")')
    nodes.append(f"s{i} = Squeeze(h{i}, axis)")
print('<ir_version: 8, opset_import: ["" : 17]>\nmany (float[6,2,1] x) => (float loss)')
print("<" + ",\n ".join(["int64[1] axis = {1}", *tensors]) + "> {")
print("\n".join(["  " + node for node in nodes] + [f"  loss = ReduceMean<keepdims = 0>(s{layers[-1]})"]) + "\n}")
