// reference/dispatch_record.h — records dispatches by lane. The engine records by op and merges the
// histograms of its ops into lanes when they are read (metrics/ops.h).
#ifndef WICK_REFERENCE_DISPATCH_RECORD_H
#define WICK_REFERENCE_DISPATCH_RECORD_H

#include "metrics/dispatch.h"

// Records a dispatch that took latency_us. O(1). Aliases are ignored, because they are not lanes.
// If `dispatch` is NULL, metrics are off.
void dispatch_record(dispatch_metrics *dispatch, op_lane lane, uint64_t latency_us);
// Records a dispatch that was not timed.
void dispatch_tally(dispatch_metrics *dispatch, op_lane lane);
// Adds another thread's counters (variance: Chan, Golub and LeVeque 1979). The earlier start is
// kept.
void dispatch_merge(dispatch_metrics *into, const dispatch_metrics *from);
// Returns the variance of a sample (n - 1), or 0 for fewer than two values.
double dispatch_latency_us_variance(const dispatch_metrics *dispatch, op_lane lane);

#endif
