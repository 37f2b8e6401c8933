// api/tables.c — tables whose rows are only looked up: decides whether they stay in the file.
#include "model/tables.h"

#include "api/insides.h"

wick_status engine_choose_tables(wick_engine *engine, wick_error *error) {
  const model_tensors tensors = engine_tensors(engine);
  const uint64_t limit = wick_engine_memory_limit(engine);
  wick_plan plan;
  if (engine->config.tables_reader == NULL && !engine->config.directory_only) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "tables outside memory need a tables_reader");
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_TABLES, 0, 0);
  }
  if (engine->config.tables == WICK_TABLES_AUTO) {
    const wick_status status = wick_memory_plan(engine, &plan, error);
    if (status != WICK_OK || limit == 0 || plan.total_bytes <= limit) return status;
  }
  tables_move_out(engine->model, &tensors, engine->config.tables_reader);
  return WICK_OK;
}
