//! The C library from Rust, without a crate: rustc wick.rs -L FOLDER_OF_LIBWICK -l wick && ./wick MODEL.gguf PROMPT [TOKENS]
//!
//! As a module: `Engine::open`, `generate`, `chat`, `embed`. Structures have the fields used here, and space for the others.

use std::ffi::{c_char, c_void, CStr, CString};
use std::io::Write;

const ROOM: usize = 1024; // bytes for the fields that are not declared here
const OK: u32 = 0;
const PROGRESS: u32 = 1;
const IDLE: u32 = 0;
const DONE: u32 = 3;
const FINISH_ERROR: u16 = 4;

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
struct Chat {
    json: *const u8,
    json_bytes: usize,
    others: [u8; ROOM],
}

#[repr(C)]
struct EmbedText {
    text: *const u8,
    text_bytes: usize,
    document: *const u8,
    document_bytes: usize,
    tokens: *const i32,
    token_count: usize,
}

#[repr(C)]
struct EmbedRequest {
    texts: *const EmbedText,
    text_count: u32,
    pooling: u32,
    dimensions: u32,
    normalizes: bool,
    others: [u8; ROOM],
}

#[repr(C)]
struct Vectors {
    values: *const f32,
    rows: u32,
    width: u32,
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
    finish: u16,
    stop: u16,
    status: u16,
    subject: u16,
}

extern "C" {
    fn wick_config_default(config: *mut Config);
    fn wick_request_default(request: *mut Request);
    fn wick_engine_create(config: *const Config, engine: *mut *mut c_void, error: *mut Error) -> u32;
    fn wick_engine_destroy(engine: *mut c_void);
    fn wick_load_file(engine: *mut c_void, path: *const c_char, error: *mut Error) -> u32;
    fn wick_request_submit(engine: *mut c_void, request: *const Request, id: *mut u32, error: *mut Error) -> u32;
    fn wick_request_cancel(engine: *mut c_void, id: u32) -> u32;
    fn wick_step(engine: *mut c_void, budget_us: u64) -> u32;
    fn wick_events_take(engine: *mut c_void, size_bytes: *mut usize) -> *const u8;
    fn wick_event_next(events: *const u8, size_bytes: usize, event: *const Event) -> *const Event;
    fn wick_event_text(event: *const Event) -> *const u8;
    fn wick_status_name(status: u32) -> *const c_char;
    fn wick_subject_name(subject: u32) -> *const c_char;
    fn wick_chat_default(chat: *mut Chat);
    fn wick_chat_tokenize(
        engine: *mut c_void, chat: *const Chat, tokens: *mut *const i32, count: *mut usize, error: *mut Error,
    ) -> u32;
    fn wick_embed_default(request: *mut EmbedRequest);
    fn wick_embed(engine: *mut c_void, request: *const EmbedRequest, error: *mut Error) -> u32;
    fn wick_embed_step(engine: *mut c_void, budget_us: u64, result: *mut u32, error: *mut Error) -> u32;
    fn wick_embed_get(engine: *const c_void, index: u32, vectors: *mut Vectors) -> bool;
    fn wick_embed_end(engine: *mut c_void);
}

/// A failed call: `status` is a name such as WICK_E_IO, `subject` the setting to change, or "".
#[derive(Debug)]
pub struct WickError {
    pub message: String,
    pub status: String,
    pub subject: String,
}

pub struct Engine(*mut c_void);

fn text_of(text: *const c_char) -> String {
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn failure(message: String, status: u32, subject: u32) -> WickError {
    let (status, subject) = unsafe { (wick_status_name(status), wick_subject_name(subject)) };
    WickError { message, status: text_of(status), subject: text_of(subject) }
}

fn check(status: u32, error: &Error) -> Result<(), WickError> {
    if status == OK {
        return Ok(());
    }
    Err(failure(text_of(error.message.as_ptr()), status, error.subject))
}

fn new_request(max_tokens: u32) -> Request {
    unsafe {
        let mut request: Request = std::mem::zeroed();
        wick_request_default(&mut request);
        request.max_tokens = max_tokens;
        request
    }
}

impl Engine {
    pub fn open(path: &str, threads: u32) -> Result<Engine, WickError> {
        let path = CString::new(path).expect("the path must not contain NUL");
        unsafe {
            let (mut config, mut error): (Config, Error) = (std::mem::zeroed(), std::mem::zeroed());
            wick_config_default(&mut config);
            config.threads = threads;
            let mut engine = Engine(std::ptr::null_mut());
            check(wick_engine_create(&config, &mut engine.0, &mut error), &error)?;
            check(wick_load_file(engine.0, path.as_ptr(), &mut error), &error)?;
            Ok(engine)
        }
    }

    /// Passes the text that follows a prompt to `take` in pieces, until it returns false.
    pub fn generate(&mut self, prompt: &str, max_tokens: u32, take: impl FnMut(&[u8]) -> bool) -> Result<(), WickError> {
        let mut request = new_request(max_tokens);
        request.text = prompt.as_ptr();
        request.text_bytes = prompt.len();
        self.run(&request, take)
    }

    /// Does the same with the answer to a conversation; `json` is {"messages": [{"role", "content"}, ...]}.
    pub fn chat(&mut self, json: &str, max_tokens: u32, take: impl FnMut(&[u8]) -> bool) -> Result<(), WickError> {
        let mut request = new_request(max_tokens);
        unsafe {
            let (mut chat, mut error): (Chat, Error) = (std::mem::zeroed(), std::mem::zeroed());
            wick_chat_default(&mut chat);
            chat.json = json.as_ptr();
            chat.json_bytes = json.len();
            let (tokens, count) = (&mut request.tokens, &mut request.token_count);
            check(wick_chat_tokenize(self.0, &chat, tokens, count, &mut error), &error)?;
        }
        self.run(&request, take)
    }

    fn run(&mut self, request: &Request, mut take: impl FnMut(&[u8]) -> bool) -> Result<(), WickError> {
        unsafe {
            let mut error: Error = std::mem::zeroed();
            let mut id = 0;
            check(wick_request_submit(self.0, request, &mut id, &mut error), &error)?;
            let running = Running { engine: self.0, id };
            loop {
                let result = wick_step(self.0, 10_000);
                let mut size = 0;
                let events = wick_events_take(self.0, &mut size);
                let mut event = wick_event_next(events, size, std::ptr::null());
                while !event.is_null() {
                    // events of a cancelled request may still arrive
                    if (*event).request == running.id && !give(event, &mut take)? {
                        return Ok(());
                    }
                    event = wick_event_next(events, size, event);
                }
                if result == IDLE {
                    return Ok(());
                }
            }
        }
    }
}

/// Cancels the request when its reader stops early, even by a panic. Cancelling a finished request has no effect.
struct Running {
    engine: *mut c_void,
    id: u32,
}

impl Drop for Running {
    fn drop(&mut self) {
        unsafe { wick_request_cancel(self.engine, self.id) };
    }
}

unsafe fn give(event: *const Event, take: &mut impl FnMut(&[u8]) -> bool) -> Result<bool, WickError> {
    let (text, bytes) = (wick_event_text(event), (*event).text_bytes as usize);
    let piece = if bytes == 0 { &[] } else { std::slice::from_raw_parts(text, bytes) };
    if (*event).kind == DONE && (*event).finish == FINISH_ERROR {
        let message = String::from_utf8_lossy(piece).into_owned();
        return Err(failure(message, (*event).status.into(), (*event).subject.into()));
    }
    Ok(take(piece))
}

impl Engine {
    /// Returns a normalized vector for each text.
    pub fn embed(&mut self, texts: &[&str]) -> Result<Vec<Vec<f32>>, WickError> {
        unsafe {
            let given: Vec<EmbedText> = texts
                .iter()
                .map(|text| EmbedText { text: text.as_ptr(), text_bytes: text.len(), ..std::mem::zeroed() })
                .collect();
            let (mut request, mut error): (EmbedRequest, Error) = (std::mem::zeroed(), std::mem::zeroed());
            wick_embed_default(&mut request);
            request.texts = given.as_ptr();
            request.text_count = given.len() as u32;
            request.normalizes = true;
            check(wick_embed(self.0, &request, &mut error), &error)?;
            let found = self.end_embedding(texts.len());
            wick_embed_end(self.0);
            found
        }
    }

    unsafe fn end_embedding(&self, count: usize) -> Result<Vec<Vec<f32>>, WickError> {
        let (mut result, mut error): (u32, Error) = (PROGRESS, std::mem::zeroed());
        while result != IDLE {
            check(wick_embed_step(self.0, 10_000, &mut result, &mut error), &error)?;
        }
        let vector_of = |index| {
            let mut vectors: Vectors = std::mem::zeroed();
            wick_embed_get(self.0, index, &mut vectors);
            std::slice::from_raw_parts(vectors.values, vectors.width as usize).to_vec()
        };
        Ok((0..count as u32).map(vector_of).collect())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.0.is_null() {
            unsafe { wick_engine_destroy(self.0) };
        }
    }
}

fn main() -> Result<(), WickError> {
    let args: Vec<String> = std::env::args().collect();
    let max_tokens = args.get(3).map_or(64, |text| text.parse().expect("TOKENS must be a number"));
    let mut engine = Engine::open(&args[1], 1)?;
    engine.generate(&args[2], max_tokens, |piece| std::io::stdout().write_all(piece).is_ok())?;
    println!();
    Ok(())
}
