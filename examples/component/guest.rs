//! A component in Rust that calls the engine's component, like guest.js. The model is read from standard input
//! (docs/components.md, "A typed interface").

wit_bindgen::generate!({
    path: ["../../component/wit/llm.wit", "guest.wit"],
    world: "example:guest/guest",
    generate_all,
});

use wasi::cli::stdin;
use wick::llm::engine::{self, Config, Constraint, ConstraintKind, Options};

struct Component;
export!(Component);

// 0: chosen by the engine.
const CONFIG: Config = Config { memory_bytes_max: 0, context_tokens: 0, kv_tokens_max: 0 };

fn options() -> Options {
    Options {
        max_tokens: 40,
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repeat_penalty: 1.0,
        seed: 0,
        control_tokens: true,
        stops: vec![],
        salt: String::new(),
        constraint: Constraint { kind: ConstraintKind::None, text: String::new() },
    }
}

async fn answer(prompt: String) -> Result<String, engine::Error> {
    let (file, _) = stdin::read_via_stream();
    let model = engine::load(file, CONFIG).await.await?;
    let (mut text, ending) = model.generate(prompt, options()).await?;
    let mut answer = String::new();
    while let Some(piece) = text.next().await {
        answer += &piece;
    }
    ending.await?;
    Ok(answer)
}

impl Guest for Component {
    async fn ask(prompt: String) -> String {
        answer(prompt).await.unwrap_or_else(|error| format!("{error:?}"))
    }
}
