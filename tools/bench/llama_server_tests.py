# Runs the tests of llama.cpp's server (tools/server/tests) against `wick serve`, and prints how many pass in each file and
# why the others fail.
#   python3 tools/bench/llama_server_tests.py LLAMA_CPP [--adapter] [--dist DIST] [--port 18080] [--json FILE] [TEST ...]
# LLAMA_CPP is a checkout or the git directory of one, and each TEST a file in unit/ or a test in it. The Python needs the
# packages in LLAMA_CPP/tools/server/tests/requirements.txt, of which openai, pytest, requests and wget are enough.
#
# The tests start llama_server.mjs, which translates the options of llama-server to those of `wick serve` and replaces
# the models with small local ones, so tests that expect a certain text fail. --adapter also starts a proxy that applies
# the defaults of llama-server's options and its names (llama_adapter.mjs). Nothing is downloaded.

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ["tools/server/tests", "tools/mtmd/test-1.jpeg", "models/templates"]

# Why tests fail, and why this stays so: the first entry whose pattern is found in a test's name and error. Other failures
# are printed in full.
REASONS = [
    (
        "a response that OpenAI's or Anthropic's API does not give",
        "OpenAI's clients rely on it: an empty text in the first chunk, the types of errors, a key for /models, /completions "
        "without /v1 in OpenAI's format. Only origins given with --cors have access. Several answers of the assistant in "
        "a row are accepted, and no messages are an error, as in Anthropic's API.",
        r"assert '' is None|non empty content delta|== '(exceed_context_size|authentication)_error'"
        r"|test_correct_api_key|public_endpoint|cors_options|messages7|empty_messages|vision_format_accepted",
    ),
    (
        "an option or route that `wick serve` does not have",
        "Wick has no slots, because requests share the pages of one KV cache; it does not shift a full context, because "
        "the model then sees positions that it was not trained on; a server has one model, which stays loaded. Paths of "
        "files, prompts of others and proxies are not for clients. Reasoning and dates are variables of a request "
        "(enable_thinking, chat_template_kwargs). Progress during prefill and vectors of single tokens would need new "
        "events of the engine.",
        r"test_server_(props|slots|sleep|model_aliases)|no_webui|static_assets|pooling_none|clear_and_restore"
        r"|test_lora\[|test_proxy|test_router|test_slot_(save|erase)|supports_multimodal|cancel_request|local_media"
        r"|ctx_shift_enabled|with_ctx_shift|return_progress|__verbose|test_reasoning|test_date_inside_prompt",
    ),
    (
        "a server with a fixed seed and temperature",
        "Requests have them.",
        r"stream_vs_non_stream|with_tokens_input|assert -1 == 42",
    ),
    (
        "images in a text prompt or from the network",
        "A server must not fetch URLs that its clients choose; images belong to messages.",
        r"test_vision_(completion|embeddings)|IMG_URL",
    ),
    (
        "images that this Node cannot decode",
        "Install sharp in a folder in NODE_PATH.",
        r"test_vision_chat.*400 == 200|sharp|decodes only PPM",
    ),
    (
        "llama.cpp's text, numbers or version",
        "The models are not the same, and some counts differ: Wick's cache keeps whole pages, the last token needs no place "
        "in the context, and probabilities after the samplers list only the tokens that they keep.",
        r"match_regex|startswith|system_fingerprint|Expected .*, got|cached_tokens|test_rerank|test_completion_unified"
        r"|ctx_shift_disabled_short|slot_ctx_not_exceeded|too large|n_probs_post_sampling",
    ),
]


def export(source, to):
    """Copies the needed files of a checkout or a git directory."""
    if (source / "tools/server/tests").exists():
        for name in NEEDED:
            copy = shutil.copytree if (source / name).is_dir() else shutil.copyfile
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            copy(source / name, to / name)
        return
    archive = subprocess.run(
        ["git", f"--git-dir={source}", "archive", "HEAD", *NEEDED], stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "x", "-C", to], input=archive.stdout, check=True)


def picture(seed):
    """Returns a PNG of 64 x 64 pixels, in place of an image that a test downloads."""

    def chunk(kind, data):
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    rows = b"".join(
        b"\0" + bytes((x * (seed + 1) + y * channel) % 256 for x in range(64) for channel in range(3))
        for y in range(64)
    )
    head = (64).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


class Downloaded:
    def __init__(self, content):
        self.content = content

    def raise_for_status(self):
        pass


class LocalFiles:
    """Replaces downloads with local files, and moves the fixed ports of some tests."""

    def __init__(self, vectors, port):
        self.vectors = vectors
        self.port = port

    def pytest_configure(self, config):
        import requests
        import utils
        import wget

        get = requests.get
        start = utils.ServerProcess.start

        def local_get(url, *args, **more):
            if url.startswith("https://huggingface.co/"):
                return Downloaded(picture(1 if "truck" in url else 2))
            return get(url, *args, **more)

        def local_download(url, out=None):
            name = "reference-more/lora/llama.qv.gguf" if "shakespeare" in url else "stories260K/stories260K-q8_0.gguf"
            os.makedirs("tmp", exist_ok=True)
            shutil.copyfile(self.vectors / name, out)

        def local_start(server, *args, **more):
            if server.server_port < 10_000:
                server.server_port += self.port - 8080
            return start(server, *args, **more)

        requests.get = local_get
        wget.download = local_download
        utils.ServerProcess.start = local_start
        utils.ServerPreset.load_all = staticmethod(lambda: None)  # it would download all models


class Results:
    """Collects the outcome of each test."""

    def __init__(self):
        self.outcomes = {}
        self.errors = {}

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self.outcomes[report.nodeid] = "skipped"
        elif report.failed:
            self.outcomes[report.nodeid] = "failed"
            lines = [line[1:].strip() for line in str(report.longrepr).split("\n") if line.startswith("E ")]
            self.errors[report.nodeid] = " | ".join(lines[:2])
        elif report.when == "call":
            self.outcomes.setdefault(report.nodeid, "passed")

    def pytest_collectreport(self, report):
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
            self.errors[report.nodeid] = "cannot be loaded"


def name_of(test):
    return test.split("/", 1)[-1]


def reason_of(test, error):
    shown = f"{name_of(test)}: {error}"
    return next((reason for reason, _, pattern in REASONS if re.search(pattern, shown, re.S)), "not explained")


def print_table(outcomes):
    files = collections.defaultdict(collections.Counter)
    for test, outcome in outcomes.items():
        for row in (test.split("::")[0].split("/")[-1], "all"):
            files[row][outcome] += 1
    print(f"\n{'file':34} passed failed skipped")
    for name, count in sorted(files.items(), key=lambda row: (row[0] == "all", row[0])):
        print(f"{name:34} {count['passed']:6} {count['failed']:6} {count['skipped']:7}")


def print_reasons(errors):
    reasons = collections.defaultdict(list)
    for test, error in errors.items():
        reasons[reason_of(test, error)].append(test)
    whys = {reason: why for reason, why, _ in REASONS}
    for reason, tests in sorted(reasons.items(), key=lambda entry: -len(entry[1])):
        print(f"\n{reason}: {len(tests)}. {whys.get(reason, '')}")
        groups = collections.Counter(name_of(test).split("[")[0] for test in tests)
        for name, count in groups.items():
            print(f"  {name}{f' ({count})' if count > 1 else ''}")
        if reason == "not explained":
            for test in tests:
                print(f"  {name_of(test)[:90]!r}: {errors[test][:200]!r}")


def main():
    parser = argparse.ArgumentParser(description="Runs the tests of llama.cpp's server against `wick serve`.")
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("tests", nargs="*", default=["unit"])
    parser.add_argument("--adapter", action="store_true", help="apply llama-server's defaults and names")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--port", type=int, default=18080)
    parser.add_argument("--json", type=Path, help="write the outcome and error of each test to this file")
    options = parser.parse_intermixed_args()
    vectors = Path(os.environ.get("WICK_SHARED", ROOT / "../shared")).resolve() / "vectors"
    source, dist = options.llama_cpp.resolve(), options.dist.resolve()
    results_file = options.json.resolve() if options.json else None
    with tempfile.TemporaryDirectory() as folder:
        export(source, Path(folder))
        os.environ.update(
            LLAMA_SERVER_BIN_PATH=str(ROOT / "tools/bench/llama_server.mjs"),
            LLAMA_CACHE=folder,
            PORT=str(options.port),
            WICK_DIST=str(dist),
            WICK_MODELS=f"{folder}/wick-models",
            WICK_SHARED=str(vectors.parent),
            WICK_ADAPTER="1" if options.adapter else "0",
        )
        os.chdir(f"{folder}/tools/server/tests")
        sys.path.insert(0, os.getcwd())
        import pytest

        results = Results()
        tests = [test if test.startswith("unit") else f"unit/{test}" for test in options.tests]
        quiet = ["-q", "--tb=short", "--show-capture=no", "-p", "no:cacheprovider", "-m", "not slow"]
        pytest.main([*quiet, *tests], plugins=[LocalFiles(vectors, options.port), results])
    print_table(results.outcomes)
    print_reasons(results.errors)
    if results_file:
        found = {test: [outcome, results.errors.get(test)] for test, outcome in results.outcomes.items()}
        results_file.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
