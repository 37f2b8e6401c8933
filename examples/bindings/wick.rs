//! The C library from Rust, without a crate: rustc wick.rs -L FOLDER_OF_LIBWICK -l wick && ./wick MODEL.gguf PROMPT [TOKENS]
//!
//! A structure has the fields that are used here and room for the others, so it fits every later minor version.

use std::ffi::{c_char, c_void, CStr, CString};
use std::io::Write;

const ROOM: usize = 1024; // bytes of the fields that are not named here
const OK: u32 = 0;
const IDLE: u32 = 0;
const DONE: u32 = 3;
const FINISH_ERROR: u32 = 4;

#[repr(C)]
struct Error {
    status: u32,
    subject: u32,
    offset_bytes: u64,
    numbers: [u64; 3],
    message: [c_char; 256],
}

#[repr(C)]
struct Config {
    memory_bytes_max: u64,
    threads: u32,
    others: [u8; ROOM],
}

#[repr(C)]
struct Request {
    text: *const u8,
    text_bytes: usize,
    tokenize_flags: u32,
    tokens: *const i32,
    token_count: usize,
    priority: i32,
    passes_waited: u32,
    completions: u32,
    healing: bool,
    no_speculation: bool,
    always_speculates: bool,
    session: u32,
    salt: *const u8,
    salt_bytes: usize,
    max_tokens: u32,
    others: [u8; ROOM],
}

#[repr(C)]
struct Event {
    size_bytes: u32,
    request: u32,
    kind: u32,
    token: i32,
    logprob: f32,
    top_count: u32,
    text_bytes: u32,
    finish: u32,
}

extern "C" {
    fn wick_config_default(config: *mut Config);
    fn wick_request_default(request: *mut Request);
    fn wick_engine_create(config: *const Config, engine: *mut *mut c_void, error: *mut Error) -> u32;
    fn wick_engine_destroy(engine: *mut c_void);
    fn wick_load_file(engine: *mut c_void, path: *const c_char, error: *mut Error) -> u32;
    fn wick_request_submit(engine: *mut c_void, request: *const Request, id: *mut u32, error: *mut Error) -> u32;
    fn wick_step(engine: *mut c_void, budget_us: u64) -> u32;
    fn wick_events_take(engine: *mut c_void, size_bytes: *mut usize) -> *const u8;
    fn wick_event_next(events: *const u8, size_bytes: usize, event: *const Event) -> *const Event;
    fn wick_event_text(event: *const Event) -> *const u8;
}

struct Engine(*mut c_void);

fn check(status: u32, error: &Error) -> Result<(), String> {
    if status == OK {
        return Ok(());
    }
    let message = unsafe { CStr::from_ptr(error.message.as_ptr()) };
    Err(message.to_string_lossy().into_owned())
}

impl Engine {
    fn open(path: &str) -> Result<Engine, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        unsafe {
            let (mut config, mut error): (Config, Error) = (std::mem::zeroed(), std::mem::zeroed());
            wick_config_default(&mut config);
            let mut engine = Engine(std::ptr::null_mut());
            check(wick_engine_create(&config, &mut engine.0, &mut error), &error)?;
            check(wick_load_file(engine.0, path.as_ptr(), &mut error), &error)?;
            Ok(engine)
        }
    }

    /// Gives the pieces of the text that follows a prompt to `take`.
    fn generate(&self, prompt: &str, max_tokens: u32, mut take: impl FnMut(&[u8])) -> Result<(), String> {
        unsafe {
            let (mut request, mut error): (Request, Error) = (std::mem::zeroed(), std::mem::zeroed());
            wick_request_default(&mut request);
            request.text = prompt.as_ptr();
            request.text_bytes = prompt.len();
            request.max_tokens = max_tokens;
            let mut id = 0;
            check(wick_request_submit(self.0, &request, &mut id, &mut error), &error)?;
            loop {
                let result = wick_step(self.0, 10_000);
                let mut size = 0;
                let events = wick_events_take(self.0, &mut size);
                let mut event = wick_event_next(events, size, std::ptr::null());
                while !event.is_null() {
                    let (text, bytes) = (wick_event_text(event), (*event).text_bytes as usize);
                    let piece = if bytes == 0 { &[] } else { std::slice::from_raw_parts(text, bytes) };
                    if (*event).kind == DONE && (*event).finish == FINISH_ERROR {
                        return Err(String::from_utf8_lossy(piece).into_owned());
                    }
                    take(piece);
                    event = wick_event_next(events, size, event);
                }
                if result == IDLE {
                    return Ok(());
                }
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.0.is_null() {
            unsafe { wick_engine_destroy(self.0) };
        }
    }
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    let max_tokens = args.get(3).map_or(Ok(64), |text| text.parse()).map_err(|_| "TOKENS is a number")?;
    let engine = Engine::open(&args[1])?;
    engine.generate(&args[2], max_tokens, |piece| {
        std::io::stdout().write_all(piece).expect("standard output");
    })?;
    println!();
    Ok(())
}
