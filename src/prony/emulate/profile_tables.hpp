// Measured times of the layers of a model, as the profiler of LLMServingSim writes them, a folder
// for each tensor-parallel degree:
//   dense.csv         layer,tokens,time_us
//   per_sequence.csv  layer,sequences,time_us       head and sampler
//   attention.csv     prefill_chunk,kv_prefill,n_decode,kv_decode,time_us
//   moe.csv           tokens,activated_experts,time_us   mixtures only
// Times are of one decoder layer, of the kernels alone. Between measured points: straight lines;
// attention of steps that mix prefill and decode: what both take alone, times a measured ratio
// between points that are powers of two (kernels of vLLM slow down decodes that share their
// launch). Source: github.com/casys-kaist/LLMServingSim, profiler. Thread safety: const calls from
// any thread.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::emulate {

/// y over x > 0, straight between points; the first before them, the last slope after them.
class Line {
 public:
  /// Requires rising x.
  void add(double x, double y) { points_.emplace_back(x, y); }
  bool empty() const { return points_.empty(); }
  double at(double x) const;
  const std::vector<std::pair<double, double>>& points() const { return points_; }

 private:
  std::vector<std::pair<double, double>> points_;
};

/// z over two numbers: lines over the second for each value of the first.
class Surface {
 public:
  Line& row(double x) { return rows_[x]; }
  bool empty() const { return rows_.empty(); }
  double at(double x, double y) const;
  const std::map<double, Line>& rows() const { return rows_; }

 private:
  std::map<double, Line> rows_;
};

struct AttentionTables {
  Surface decode;   // (sequences, mean context) -> us
  Surface prefill;  // (new tokens, context) -> us
  /// Mixed steps: [chunk][context of the prefill][sequences][their context], time over the sum of
  /// both.
  std::array<std::vector<double>, 4> axes;  // rising
  std::vector<float> ratios;                // 1 where nothing was measured
  double ratio(const std::array<double, 4>& at) const;
};

struct ProfileTables {
  std::map<std::string, Line, std::less<>> dense, per_sequence;
  AttentionTables attention;
  Surface moe;  // (tokens, activated experts) -> us; empty for dense models
};

/// The contents of the files; moe empty where there is none.
struct ProfileTexts {
  std::string folder;  // for messages
  std::string dense, per_sequence, attention, moe;
};

/// Error: kInvalidArgument, "FILE:LINE: found ..., expected ...".
Result<ProfileTables> parse_profile(const ProfileTexts& texts);

/// `path`: the folder, or one of its files.
/// Error: that of parse_profile() or of reading.
Result<ProfileTables> read_profile(const std::string& path);

}  // namespace prony::emulate
