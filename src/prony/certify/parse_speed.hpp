// The speed of the token path alone: SSE framing, JSON and timeline, from memory.
// Thread safety: function any thread.
#pragma once

namespace prony::certify {

/// Token events a second of CPU time of one core, the best of a few repeats; of some seconds of
/// them while the best is below `wanted_per_s`: a neighbour of the host may have the core's other
/// half.
double parsed_events_per_s(double wanted_per_s);

}  // namespace prony::certify
