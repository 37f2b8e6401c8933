# The worker in workerd, the open runtime of Cloudflare Workers. README.md says how to start it.

using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "wick", worker = .wick),
    # what stands in for R2 here: local_bucket.mjs
    (name = "bucket", external = (address = "127.0.0.1:8788", http = ())),
  ],
  # JavaScript's share of the limit, which workerd does not keep by itself (docs/edge.md)
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
    # tokens of a context, and the type of its keys and values: smaller ones leave more to the weights
    (name = "CONTEXT", fromEnvironment = "CONTEXT"),
    (name = "KV", fromEnvironment = "KV"),
  ],
);
