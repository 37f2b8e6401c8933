"""Writes a trained checkpoint as GGUF: python export.py --run DIR --to FOLDER [--types q8_0,q4_0,f16,f32].

Writes wick-4.2m-q8_0.gguf (all matrices Q8_0) and wick-4.2m-q4_0.gguf (layer matrices Q4_0, embedding Q8_0);
norms are F32 in both. The embedding is also the output matrix, so there is no output.weight. wick-4.2m-f32.gguf
(everything F32, not part of the package) is the reference for the divergence of the others.
"""

import argparse
import json
import os

import gguf
import numpy as np

import corpus
import ggufmodel
import model
import train

CHAT_TEMPLATE = (
    "{%- if messages[0]['role'] != 'system' -%}"
    "{{- '<|im_start|>system\\n" + corpus.DEFAULT_SYSTEM + "<|im_end|>\\n' -}}"
    "{%- endif -%}"
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
SIZE = "4.2M"
SHARPNESS = 3.0  # scales the final norm and so all logits: greedy answers stay the same, a temperature of 0.8 samples like 0.27
DESCRIPTION = ("A small chat model that comes with Wick: short conversations, questions about Wick, little stories, "
               "small sums, JSON. Trained on text from the project's own templates.")
Q8_0, Q4_0, F16, F32 = (gguf.GGMLQuantizationType[name] for name in ("Q8_0", "Q4_0", "F16", "F32"))
TYPES = {  # name -> (file type, type of layer matrices, type of the embedding)
    "q8_0": (gguf.LlamaFileType.MOSTLY_Q8_0, Q8_0, Q8_0),
    "q4_0": (gguf.LlamaFileType.MOSTLY_Q4_0, Q4_0, Q8_0),
    "f16": (gguf.LlamaFileType.MOSTLY_F16, F16, F16),
    "f32": (gguf.LlamaFileType.ALL_F32, F32, F32),
}


def write_metadata(writer, file_type):
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(f"Wick {SIZE}")
    writer.add_basename("wick")
    writer.add_size_label(SIZE)
    writer.add_license("mit")
    writer.add_description(DESCRIPTION)
    writer.add_author("the Wick project")
    writer.add_languages(["en"])
    writer.add_tags(["text-generation", "chat"])
    writer.add_context_length(model.CONTEXT)
    writer.add_embedding_length(model.HIDDEN)
    writer.add_block_count(model.LAYERS)
    writer.add_feed_forward_length(model.FFN)
    writer.add_head_count(model.HEADS)
    writer.add_head_count_kv(model.KV_HEADS)
    writer.add_key_length(model.HEAD_DIM)
    writer.add_value_length(model.HEAD_DIM)
    writer.add_rope_dimension_count(model.HEAD_DIM)
    writer.add_rope_freq_base(model.ROPE_THETA)
    writer.add_layer_norm_rms_eps(model.NORM_EPS)
    writer.add_vocab_size(model.VOCAB)
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_float32(ggufmodel.SHARPNESS_KEY, SHARPNESS)


def write_tokenizer(writer, tokenizer_json):
    bpe = tokenizer_json["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].get)
    special = {entry["content"] for entry in tokenizer_json["added_tokens"]}
    merges = [m if isinstance(m, str) else " ".join(m) for m in bpe["merges"]]
    ids = bpe["vocab"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL for t in tokens])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(ids[corpus.IM_END])
    writer.add_eot_token_id(ids[corpus.IM_END])
    writer.add_pad_token_id(ids[corpus.END_OF_TEXT])
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def write(path, params, tokenizer_json, kind):
    file_type, layer_type, embedding_type = TYPES[kind]
    writer = gguf.GGUFWriter(path, "llama")
    write_metadata(writer, file_type)
    write_tokenizer(writer, tokenizer_json)
    for name in model.tensor_shapes():
        value = np.asarray(params[name], np.float32) * (SHARPNESS if name == "output_norm" else 1.0)
        if value.ndim == 1:
            writer.add_tensor(f"{name}.weight", value)
            continue
        kept = layer_type if model.is_layer_matrix(name) else embedding_type
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(value, kept), raw_dtype=kept)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def blended(params, path, share):
    """Averages the trained weights (`share`) with those of the file that the run began with, which is better than either after a short run."""
    begun = ggufmodel.GgufModel(path).trained_params()
    return {name: share * np.asarray(value, np.float32) + (1 - share) * begun[name] for name, value in params.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True, help="folder with the output of train.py")
    parser.add_argument("--to", required=True, help="folder for the GGUF files")
    parser.add_argument("--types", default="q8_0,q4_0", help="which files to write: q8_0, q4_0, f16, f32")
    parser.add_argument("--blend", help="the GGUF file that the run began with, to average with")
    parser.add_argument("--share", type=float, default=0.6, help="with --blend: the share of the trained weights")
    args = parser.parse_args()
    params = train.load_params(os.path.join(args.run, "checkpoint.npz"))
    params = blended(params, args.blend, args.share) if args.blend else params
    with open(os.path.join(args.run, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer_json = json.load(file)
    for kind in args.types.split(","):
        path = os.path.join(args.to, f"wick-{SIZE.lower()}-{kind}.gguf")
        write(path, params, tokenizer_json, kind)
        print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
