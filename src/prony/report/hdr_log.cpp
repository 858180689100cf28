#include "prony/report/hdr_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "prony/core/file.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/report/base64.hpp"

namespace prony::report {
namespace {

using core::Nanos;
using record::RequestRow;

/// Of an interval log of any run, so that memory and file stay small: 6 tags in each.
constexpr Nanos kIntervalsMax = 240;

// Cookies of the V2 encoding, with HdrHistogram's mark of a word size of one byte.
constexpr int32_t kCookie = 0x1c849303 | 0x10, kCompressedCookie = 0x1c849304 | 0x10;
constexpr int32_t kDigits = 3;
constexpr int kSubBucketBits = 11;  // the least power of two at or above 2 * 10^kDigits

void big_endian(std::string& out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift));
  }
}

// HdrHistogram's ZigZag LEB128: eight digits of 7 bits, the ninth byte holds 8.
void leb128(std::string& out, int64_t value) {
  uint64_t rest = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  for (int i = 0; i < 8 && rest >= 0x80; ++i) {
    out.push_back(static_cast<char>(rest | 0x80));
    rest >>= 7;
  }
  out.push_back(static_cast<char>(rest));
}

uint32_t index_of(uint64_t value) {
  const int bucket = std::max(0, static_cast<int>(std::bit_width(value)) - kSubBucketBits);
  const uint64_t half = uint64_t{1} << (kSubBucketBits - 1);
  return static_cast<uint32_t>(static_cast<uint64_t>(bucket + 1) * half + (value >> bucket) - half);
}

uint32_t adler32(std::string_view bytes) {
  uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

struct Tag {
  const char* name;
  std::optional<double> (*value_ms)(const RequestRow&);  // nullptr: the gaps
};
constexpr std::array kTags = {Tag{"ttft", record::ttft_ms},
                              Tag{"tpot", record::tpot_ms},
                              Tag{"itl", nullptr},
                              Tag{"e2e", record::e2e_ms},
                              Tag{"ttft_intended", record::ttft_intended_ms},
                              Tag{"e2e_intended", record::e2e_intended_ms}};

uint64_t to_ns(double ms) {
  return ms <= 0 ? 0 : static_cast<uint64_t>(std::llround(ms * 1e6));
}

using Interval = std::array<HdrCounts, kTags.size()>;

void add(const RequestRow& row, std::vector<double>& gaps, Interval& interval) {
  for (size_t i = 0; i < kTags.size(); ++i) {
    if (kTags[i].value_ms != nullptr) {
      if (const auto ms = kTags[i].value_ms(row)) interval[i].record(to_ns(*ms));
      continue;
    }
    gaps.clear();
    record::append_itl_ms(row, gaps);
    for (const double ms : gaps) interval[i].record(to_ns(ms));
  }
}

std::string seconds(Nanos ns) {
  return fmt::format("{}.{:03}", ns / core::kNanosPerSecond,
                     ns % core::kNanosPerSecond / core::kNanosPerMilli);
}

}  // namespace

void HdrCounts::record(uint64_t value_ns) {
  value_ns = std::min(value_ns, kHighest);
  ++counts_[index_of(value_ns)];
  max_ns_ = std::max(max_ns_, value_ns);
}

std::string HdrCounts::encoded() const {
  std::string counts;
  uint32_t next = 0;
  for (const auto& [index, count] : counts_) {
    // A negative number is that many buckets without a count.
    if (index > next) leb128(counts, -static_cast<int64_t>(index - next));
    leb128(counts, static_cast<int64_t>(count));
    next = index + 1;
  }
  std::string payload;
  big_endian(payload, kCookie, 4);
  big_endian(payload, counts.size(), 4);
  big_endian(payload, 0, 4);  // normalizing index offset
  big_endian(payload, kDigits, 4);
  big_endian(payload, 1, 8);  // lowest discernible value
  big_endian(payload, kHighest, 8);
  big_endian(payload, std::bit_cast<uint64_t>(1.0), 8);  // integer to double
  payload += counts;
  const auto compressed = zlib_stored(payload);
  std::string out;
  big_endian(out, kCompressedCookie, 4);
  big_endian(out, compressed.size(), 4);
  return base64(out + compressed);
}

std::string zlib_stored(std::string_view bytes) {
  constexpr size_t kBlockMax = 65'535;
  std::string out = "\x78\x01";
  const uint32_t check = adler32(bytes);
  do {
    const auto block = bytes.substr(0, kBlockMax);
    bytes.remove_prefix(block.size());
    const auto size = static_cast<uint32_t>(block.size());
    out.push_back(bytes.empty() ? 1 : 0);  // the last block
    for (const uint32_t word : {size, ~size}) {
      out.push_back(static_cast<char>(word & 0xff));
      out.push_back(static_cast<char>(word >> 8 & 0xff));
    }
    out += block;
  } while (!bytes.empty());
  big_endian(out, check, 4);
  return out;
}

Result<void> write_hdr_log(const std::string& path, const record::RowSource& rows,
                           const Population& population, Nanos realtime_offset_ns) {
  std::optional<Nanos> first, last;
  const auto counts = [&](const RequestRow& row) {
    return row.status == record::Status::kOk && row.t_last_token_ns && population.holds(row);
  };
  rows.for_each([&](const RequestRow& row) {
    if (!counts(row)) return;
    first = std::min(first.value_or(row.t_intended_ns), row.t_intended_ns);
    last = std::max(last.value_or(*row.t_last_token_ns), *row.t_last_token_ns);
  });
  const Nanos begin = first.value_or(0), span = last.value_or(0) - begin;
  // Whole seconds.
  const Nanos width =
      std::max<Nanos>(1, span / core::kNanosPerSecond / kIntervalsMax + 1) * core::kNanosPerSecond;
  std::vector<Interval> intervals(static_cast<size_t>(first ? span / width + 1 : 0));
  std::vector<double> gaps;
  rows.for_each([&](const RequestRow& row) {
    if (!counts(row)) return;
    add(row, gaps, intervals[static_cast<size_t>((*row.t_last_token_ns - begin) / width)]);
  });

  auto file = core::AtomicFile::create(path);
  if (!file) return file.error();
  const Nanos started = begin + realtime_offset_ns;
  file->append("#[Logged by prony; values in ns, Interval_Max in ms]\n");
  file->append("#[Histogram log format version 1.3]\n");
  file->append(fmt::format("#[StartTime: {} (seconds since epoch), {}]\n", seconds(started),
                           core::utc_text(started).text));
  file->append(fmt::format("#[BaseTime: {} (seconds since epoch)]\n", seconds(started)));
  file->append(
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_"
      "Histogram\"\n");
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Nanos from = static_cast<Nanos>(i) * width;
    const Nanos length = std::min(width, span - from);
    for (size_t tag = 0; tag < kTags.size(); ++tag) {
      const auto& histogram = intervals[i][tag];
      if (histogram.empty()) continue;
      file->append(fmt::format("Tag={},{},{},{:.6f},{}\n", kTags[tag].name, seconds(from),
                               seconds(length), static_cast<double>(histogram.max_ns()) / 1e6,
                               histogram.encoded()));
    }
  }
  return file->commit();
}

}  // namespace prony::report
