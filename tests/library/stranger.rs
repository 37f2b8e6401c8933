//! A program that uses the installed library and examples/bindings/wick.rs: it chats, embeds and handles errors.
//!
//! Usage: stranger MODEL.gguf TOKENS QUESTION. Prints one line each for the answer (twice), dot products of three vectors, and errors.

#[path = "../../examples/bindings/wick.rs"]
#[allow(dead_code)]
mod wick;

use wick::{Engine, WickError};

fn ask(engine: &mut Engine, json: &str, max_tokens: u32) -> Result<String, WickError> {
    let mut bytes = Vec::new();
    engine.chat(json, max_tokens, |piece| {
        bytes.extend_from_slice(piece);
        true
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn report<T>(result: Result<T, WickError>) {
    let error = result.err().expect("an error");
    println!("{} {}: {}", error.status, error.subject, error.message);
}

fn main() -> Result<(), WickError> {
    let args: Vec<String> = std::env::args().collect();
    let max_tokens = args[2].parse().expect("TOKENS is a number");
    let mut engine = Engine::open(&args[1], 2)?;
    let json = format!("{{\"messages\": [{{\"role\": \"user\", \"content\": {:?}}}]}}", args[3]);
    println!("{}", ask(&mut engine, &json, max_tokens)?);
    engine.chat(&json, 0, |_| false)?; // stopped after the first piece
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine.chat(&json, 0, |_| panic!("a reader")))).is_err();
    println!("{panicked} {}", ask(&mut engine, &json, max_tokens)?);
    let vectors = engine.embed(&["a fox", "a crow", "a fox"])?;
    let product = |a: usize, b: usize| -> f32 { vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum() };
    println!("{:.4} {:.4} {}", product(0, 0), product(0, 1), vectors[0] == vectors[2]);
    report(ask(&mut engine, "{", 1));
    report(engine.generate(&"fox ".repeat(10000), 1, |_| true));
    report(engine.embed(&[]));
    report(Engine::open(&args[1], 65));
    report(Engine::open("none.gguf", 1));
    Ok(())
}
