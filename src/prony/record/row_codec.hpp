// A row in few bytes: what RowStore keeps of each request, about 120 bytes and 8 an event. Stamps
// are differences, from the intended instant and from event to event, in base-128 digits. A format
// of one process: it is never read by another build.
// Thread safety: pure functions.
#pragma once
#include <string>
#include <string_view>

#include "prony/record/request_row.hpp"

namespace prony::record {

/// Appends the row to `out`; allocates only where `out` must grow.
void encode_row(const RequestRow& row, std::string& out);

/// Into `row`, reusing its memory. False if `bytes` is not exactly one encoded row.
bool decode_row(std::string_view bytes, RequestRow& row);

}  // namespace prony::record
