"""Writes the files that transformers.js needs for an embedder with BERT's architecture, from the weights of
sentence-transformers: ONNX in F32 and with onnxruntime's dynamic quantisation.

    python tools/embed/bert_onnx.py FOLDER OUT

FOLDER contains config.json, model.safetensors and tokenizer.json. OUT receives onnx/model.onnx,
onnx/model_quantized.onnx and copies of the tokenizer's files. The graph has the operators that
PyTorch's exporter emits for BERT (opset 17); onnxruntime fuses them when it loads the file. Weights become int8
and activations uint8, which transformers.js calls "q8". Needs tools/embed/requirements.txt.
"""
import json
import math
import os
import shutil
import struct
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

OPSET = 17
IR_VERSION = 8
MASKED = float(numpy.finfo(numpy.float32).min)


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, fact in header.items():
        if name == "__metadata__" or fact["dtype"] != "F32":
            continue
        first, last = fact["data_offsets"]
        tensors[name] = numpy.frombuffer(data[first:last], "<f4").reshape(fact["shape"])
    return tensors


class Graph:
    """Nodes and weights; each method adds nodes and returns the name of their output."""

    def __init__(self, tensors):
        self.tensors, self.nodes, self.weights, self.count = tensors, [], {}, 0

    def add(self, kind, *inputs, **attributes):
        self.count += 1
        name = "%s_%d" % (kind, self.count)
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def hold(self, name, values):
        self.weights[name] = numpy_helper.from_array(numpy.ascontiguousarray(values), name)
        return name

    def floats(self, value):
        return self.hold("float_%r" % value, numpy.array(value, numpy.float32))

    def sizes(self, *values):
        return self.hold("sizes_" + "_".join(map(str, values)), numpy.array(values, numpy.int64))

    def weight(self, name):
        return self.hold(name, self.tensors[name])

    def dense(self, x, name):
        turned = self.hold(name + ".weight", self.tensors[name + ".weight"].T)
        return self.add("Add", self.weight(name + ".bias"), self.add("MatMul", x, turned))

    def norm(self, x, name, epsilon):
        return self.add("LayerNormalization", x, self.weight(name + ".weight"), self.weight(name + ".bias"),
                        axis=-1, epsilon=epsilon)

    def gelu(self, x):
        grown = self.add("Add", self.add("Erf", self.add("Div", x, self.floats(math.sqrt(2)))), self.floats(1.0))
        return self.add("Mul", self.add("Mul", x, grown), self.floats(0.5))


def embeddings(graph, epsilon):
    words = graph.add("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    segments = graph.add("Gather", graph.weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
    length = graph.add("Slice", graph.add("Shape", "input_ids"), graph.sizes(1), graph.sizes(2), graph.sizes(0))
    positions = graph.tensors["embeddings.position_embeddings.weight"]
    ids = graph.hold("position_ids", numpy.arange(len(positions), dtype=numpy.int64)[None, :])
    taken = graph.add("Slice", ids, graph.sizes(0), length, graph.sizes(1))
    places = graph.add("Gather", graph.weight("embeddings.position_embeddings.weight"), taken)
    summed = graph.add("Add", graph.add("Add", words, segments), places)
    return graph.norm(summed, "embeddings.LayerNorm", epsilon)


def mask(graph):
    """Returns [batch, 1, 1, length]: 0 for tokens, the lowest float for padding."""
    wide = graph.add("Unsqueeze", graph.add("Unsqueeze", "attention_mask", graph.sizes(1)), graph.sizes(2))
    missing = graph.add("Sub", graph.floats(1.0), graph.add("Cast", wide, to=TensorProto.FLOAT))
    return graph.add("Mul", missing, graph.floats(MASKED))


def attention(graph, x, name, config, masked):
    heads = config["num_attention_heads"]
    width = config["hidden_size"] // heads
    split = graph.sizes(0, 0, heads, width)
    q, k, v = (graph.add("Reshape", graph.dense(x, name + ".self." + part), split) for part in ("query", "key", "value"))
    q = graph.add("Transpose", q, perm=[0, 2, 1, 3])
    v = graph.add("Transpose", v, perm=[0, 2, 1, 3])
    k = graph.add("Transpose", k, perm=[0, 2, 3, 1])
    scores = graph.add("Div", graph.add("MatMul", q, k), graph.floats(math.sqrt(width)))
    shares = graph.add("Softmax", graph.add("Add", scores, masked), axis=-1)
    mixed = graph.add("Transpose", graph.add("MatMul", shares, v), perm=[0, 2, 1, 3])
    return graph.dense(graph.add("Reshape", mixed, graph.sizes(0, 0, heads * width)), name + ".output.dense")


def layer(graph, x, name, config, masked):
    epsilon = config["layer_norm_eps"]
    seen = graph.add("Add", attention(graph, x, name + ".attention", config, masked), x)
    x = graph.norm(seen, name + ".attention.output.LayerNorm", epsilon)
    wide = graph.gelu(graph.dense(x, name + ".intermediate.dense"))
    grown = graph.add("Add", graph.dense(wide, name + ".output.dense"), x)
    return graph.norm(grown, name + ".output.LayerNorm", epsilon)


def bert(tensors, config):
    graph = Graph(tensors)
    x = embeddings(graph, config["layer_norm_eps"])
    masked = mask(graph)
    for number in range(config["num_hidden_layers"]):
        x = layer(graph, x, "encoder.layer.%d" % number, config, masked)
    graph.nodes[-1].output[0] = "last_hidden_state"
    shape = ["batch_size", "sequence_length"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape)
              for name in ("input_ids", "attention_mask", "token_type_ids")]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape + [config["hidden_size"]])
    whole = helper.make_graph(graph.nodes, "bert", inputs, [output], list(graph.weights.values()))
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model


def main():
    folder, out = sys.argv[1:]
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    assert config["model_type"] == "bert" and config["hidden_act"] == "gelu", folder
    os.makedirs(os.path.join(out, "onnx"), exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(os.path.join(folder, name), os.path.join(out, name))
    plain = os.path.join(out, "onnx", "model.onnx")
    onnx.save(bert(read_safetensors(os.path.join(folder, "model.safetensors")), config), plain)
    # like the conversion script of transformers.js: signed weights, one scale per matrix
    quantize_dynamic(plain, os.path.join(out, "onnx", "model_quantized.onnx"), weight_type=QuantType.QInt8,
                     extra_options={"EnableSubgraph": True, "MatMulConstBOnly": True})


if __name__ == "__main__":
    main()
