// The speed of the token path alone: SSE framing, JSON and timeline, from memory.
// Thread safety: function any thread.
#pragma once

namespace prony::certify {

/// Token events a second of CPU time of one core, the best of a few repeats.
double parsed_events_per_s();

}  // namespace prony::certify
