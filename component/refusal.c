// component/refusal.c — rejects request bodies, and converts the engine's errors to refusals.
#include "refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shape.h"

bool refuse(refusal *out, uint16_t status, const char *code, const char *param, const char *format,
            ...) {
  if (out->status != 0) return false;
  out->status = status;
  out->code = code;
  snprintf(out->param, sizeof out->param, "%s", param == NULL ? "" : param);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out->message, sizeof out->message, format, arguments);
  va_end(arguments);
  return false;
}

bool refuse_memory(refusal *out, const char *what) {
  return refuse(out, 503, "nomem", NULL, "Out of memory%s%s", what == NULL ? "" : " for ",
                what == NULL ? "" : what);
}

bool refuse_value(refusal *out, const char *param, const char *wanted) {
  return refuse(out, 400, "invalid_value", param, "%s must be %s", param, wanted);
}

// Returns the field of the body that an error refers to.
static const char *param_of(const wick_error *error, const char *text, const char *format) {
  switch (error->subject) {
    case WICK_SUBJECT_PROMPT:
    case WICK_SUBJECT_CONTEXT:
      return text;
    case WICK_SUBJECT_GRAMMAR:
      return format;
    case WICK_SUBJECT_TOOLS:
      return "tool_choice";
    case WICK_SUBJECT_STOPS:
      return "stop";
    case WICK_SUBJECT_BIAS:
      return "logit_bias";
    case WICK_SUBJECT_COMPLETIONS:
      return "n";
    case WICK_SUBJECT_LOGPROBS:
      return "logprobs";
    default:
      return wick_subject_name(error->subject);
  }
}

bool refuse_error(refusal *out, const wick_error *error, const char *text, const char *format) {
  const char *param = param_of(error, text, format), *message = error->message;
  const bool is_of_tools =
      error->subject == WICK_SUBJECT_TOOLS || error->subject == WICK_SUBJECT_TOOL_CHOICE;
  const bool is_of_template =
      error->subject == WICK_SUBJECT_TEMPLATE && error->status != WICK_E_NOMEM;
  if (is_of_template && error->status == WICK_E_NODATA) {
    return refuse(out, 400, "no_template", NULL,
                  "The model has no chat template: use /v1/completions, or a model whose GGUF has "
                  "tokenizer.chat_template");
  }
  if (is_of_template) return refuse(out, 400, "template", "messages", "%s", message);
  switch (error->status) {
    case WICK_E_ARG:
    case WICK_E_RANGE:
      return refuse(out, 400, "invalid_value", param, "%s", message);
    case WICK_E_UNSUPPORTED:
      return refuse(out, 400, "unsupported_value", param, "%s", message);
    case WICK_E_FULL:
      if (error->subject == WICK_SUBJECT_REQUESTS || error->subject == WICK_SUBJECT_QUEUE_TOKENS) {
        return refuse(out, 429, "queue_full", NULL, "%s", message);
      }
      if (is_of_tools || error->subject == WICK_SUBJECT_GRAMMAR) {
        return refuse(out, 400, "invalid_value", param, "%s", message);
      }
      if (out->status == 0 && error->subject == WICK_SUBJECT_CONTEXT) {
        out->prompt_tokens = error->numbers[0];
        out->context_tokens = error->numbers[1];
      }
      return refuse(out, 400, "context_length_exceeded", text, "%s", message);
    case WICK_E_PAGES:
      return refuse(out, 503, "pages", NULL, "%s", message);
    case WICK_E_NOMEM:
      return refuse(out, 503, "nomem", NULL, "%s", message);
    case WICK_E_NODATA:
      return refuse(out, 501, "nodata", NULL, "%s", message);
    case WICK_E_NONFINITE:
      return refuse(out, 500, "nonfinite", NULL, "%s", message);
    default:
      return refuse(out, 500, "internal_error", NULL,
                    "The server failed to handle this request: %s", message);
  }
}

static const char *type_of(uint16_t status) {
  if (status == 429) return "rate_limit_error";
  if (status == 501) return "not_implemented_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

void refusal_write(const refusal *failure, buffer *out) {
  shape_put(out, "{'error':{'message':%s,'type':%s,'param':%s,'code':%s", failure->message,
            type_of(failure->status), failure->param[0] == '\0' ? NULL : failure->param,
            failure->code);
  if (failure->prompt_tokens != 0) {
    shape_put(out, ",'n_prompt_tokens':%U,'n_ctx':%U", failure->prompt_tokens,
              failure->context_tokens);
  }
  buffer_put_text(out, "}}");
}
