# The worker in workerd, the open-source runtime of Cloudflare Workers. README.md describes how to start it.

using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "wick", worker = .wick),
    # replaces R2 locally: local_bucket.mjs
    (name = "bucket", external = (address = "127.0.0.1:8788", http = ())),
  ],
  # JavaScript's share of the memory limit, which workerd does not enforce automatically (docs/edge.md)
  v8Flags = ["--max-heap-size=20"],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "wick")],
);

const wick :Workerd.Worker = (
  # `enable_request_signal`: request.signal aborts when the client disconnects
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["enable_request_signal"],
  modules = [
    (name = "worker.js", esModule = embed "worker.js"),
    (name = "wick-llm/edge", esModule = embed "../../dist/edge.js"),
    (name = "wick-llm/openai", esModule = embed "../../dist/openai.js"),
    (name = "wick-llm/wasm/wick-simd128-single.wasm",
     wasm = embed "../../dist/wasm/wick-simd128-single.wasm"),
    (name = "wick-llm/wasm/wick-simd128-single-grammar.wasm",
     wasm = embed "../../dist/wasm/wick-simd128-single-grammar.wasm"),
    (name = "wick-llm/wasm/wick-simd128-single-extras.wasm",
     wasm = embed "../../dist/wasm/wick-simd128-single-extras.wasm"),
  ],
  bindings = [
    (name = "MODELS", r2Bucket = "bucket"),
    # context tokens, and the KV cache type: smaller values leave more memory for the weights
    (name = "CONTEXT", fromEnvironment = "CONTEXT"),
    (name = "KV", fromEnvironment = "KV"),
  ],
);
