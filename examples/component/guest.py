"""A component in Python that uses the engine's component, like guest.js. The model is read from standard input
(docs/components.md, "A typed interface"):

    make edge
    node tools/component/guest.mjs examples/component/guest.py examples/component/guest.wit \
      build/edge/wick-llm.wasm build/edge/guest.wasm
    wasmtime run -Scli -Sp3 -Wcomponent-model-async --invoke 'ask("What is Wick?")' build/edge/guest.wasm < model.gguf
"""

import wit_world
from componentize_py_types import Err
from wit_world.imports import engine, stdin

CONFIG = engine.Config(memory_bytes_max=0, context_tokens=0, kv_tokens_max=0)  # chosen by the engine
OPTIONS = engine.Options(
    max_tokens=40,
    temperature=0,
    top_k=0,
    top_p=1,
    min_p=0,
    repeat_penalty=1,
    seed=0,
    control_tokens=True,
    stops=[],
    salt="",
    constraint=engine.Constraint(engine.ConstraintKind.NONE, ""),
)


async def result_of(future):
    result = await future.read()
    if isinstance(result, Err):
        raise result
    return result.value


class WitWorld(wit_world.WitWorld):
    async def ask(self, prompt: str) -> str:
        file, _ = stdin.read_via_stream()
        model = await result_of(await engine.load(file, CONFIG))
        stream, ending = await model.generate(prompt, OPTIONS)
        answer = ""
        with stream:
            while not stream.writer_dropped:
                answer += "".join(await stream.read(16))
        await result_of(ending)
        return answer
