// reference/dispatch_record.c — records into lanes.
#include "reference/dispatch_record.h"

void dispatch_tally(dispatch_metrics *dispatch, op_lane lane) {
  if (dispatch == NULL || (unsigned)lane >= LANE_COUNT) return;
  dispatch->lanes[lane].dispatches++;
}

void dispatch_record(dispatch_metrics *dispatch, op_lane lane, uint64_t latency_us) {
  if (dispatch == NULL || (unsigned)lane >= LANE_COUNT) return;
  dispatch->lanes[lane].dispatches++;
  latency_record(&dispatch->lanes[lane], latency_us);
}

void dispatch_merge(dispatch_metrics *into, const dispatch_metrics *from) {
  for (int lane = 0; lane < LANE_COUNT; lane++) {
    latency_merge(&into->lanes[lane], &from->lanes[lane]);
  }
  if (from->start_us < into->start_us) into->start_us = from->start_us;
}

double dispatch_latency_us_variance(const dispatch_metrics *dispatch, op_lane lane) {
  const double stddev_us = dispatch_latency_us_stddev(dispatch, lane);
  return stddev_us * stddev_us;
}
