// cli/commands.h — the program and its list of commands. commands_all.c builds wick with all
// commands, commands_usual.c builds a small program without the code of the less common commands,
// and lab/commands_lab.c builds wick-lab.
#ifndef WICK_CLI_COMMANDS_H
#define WICK_CLI_COMMANDS_H

#include "cli/command.h"

#define WICK_NAME "wick"
#define WICK_PURPOSE "runs GGUF language models"

// Each row: the function, the name, the description.
#define COMMANDS_USUAL(X)                                         \
  X(command_run, "run", "continue a prompt")                      \
  X(command_chat, "chat", "chat with the model's chat template")  \
  X(command_embed, "embed", "compute vectors of texts")           \
  X(command_rerank, "rerank", "rank documents by a query")        \
  X(command_tokenize, "tokenize", "turn text into token ids")     \
  X(command_detokenize, "detokenize", "turn token ids into text") \
  X(command_template, "template", "turn a conversation into a prompt")
#define COMMANDS_FURTHER(X)                                                                  \
  X(command_inspect, "inspect", "print metadata, tensors and the memory plan")               \
  X(command_logits, "logits", "write the logits of every position")                          \
  X(command_bench, "bench", "measure prefill and decode")                                    \
  X(command_perplexity, "perplexity", "measure how well a model predicts text")              \
  X(command_quantize, "quantize", "convert a model file to a different type")                \
  X(command_embed_component, "embed-component", "put a model into a component of wasi:http") \
  X(command_constrain, "constrain", "check strings against a grammar")                       \
  X(command_media, "media", "encode images and audio for a model")                           \
  X(command_synth, "synth", "make a model of a known shape with random weights")
#define COMMAND_HERE(function, name, summary) {name, summary, function},
// A command that only FULL_PROGRAM has.
#define COMMAND_ELSEWHERE(function, name, summary) {name, summary, NULL},

extern const char PROGRAM_NAME[], PROGRAM_PURPOSE[];
// The last entry has no name.
extern const command COMMANDS[];
// The program that has the commands and extras (base/extras.h) that this one lacks. NULL: this one
// has everything.
extern const char *const FULL_PROGRAM;

#endif
