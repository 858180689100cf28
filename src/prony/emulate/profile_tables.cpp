#include "prony/emulate/profile_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "prony/core/file.hpp"
#include "prony/core/math.hpp"

namespace prony::emulate {
namespace {

using Fields = std::vector<std::string_view>;

Fields split(std::string_view line) {
  Fields fields;
  for (size_t at = 0;;) {
    const size_t comma = line.find(',', at);
    fields.push_back(line.substr(at, comma - at));
    if (comma == std::string_view::npos) return fields;
    at = comma + 1;
  }
}

// One line of numbers, the first `words` fields left as they are.
struct Row {
  std::string_view word;  // the first field, where it is a name
  std::vector<double> numbers;
};

// A file whose first line is `header`; all numbers >= 0, times > 0.
Result<std::vector<Row>> parse_table(const ProfileTexts& texts, std::string_view name,
                                     std::string_view text, std::string_view header) {
  const std::string path =
      texts.folder.empty() ? std::string(name) : fmt::format("{}/{}", texts.folder, name);
  const bool named = header.starts_with("layer,");
  const size_t columns = split(header).size();
  std::vector<Row> rows;
  int64_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto refuse = [&](std::string_view found, std::string_view expected) {
      std::string shown(found.substr(0, 80));
      for (char& c : shown) c = static_cast<unsigned char>(c) < 0x20 ? '?' : c;
      return invalid_argument(
          fmt::format("{}:{}: found '{}', expected {}", path, number, shown, expected));
    };
    if (++number == 1) {
      if (line != header) return refuse(line, header);
      continue;
    }
    if (line.empty()) continue;
    const Fields fields = split(line);
    if (fields.size() != columns) {
      return refuse(line, fmt::format("{} fields", columns));
    }
    Row row;
    if (named) row.word = fields[0];
    for (size_t i = named ? 1 : 0; i < columns; ++i) {
      double value = 0;
      const auto [last, error] =
          std::from_chars(fields[i].data(), fields[i].data() + fields[i].size(), value);
      const bool time = i + 1 == columns;
      if (error != std::errc() || last != fields[i].data() + fields[i].size() ||
          !std::isfinite(value) || value < 0 || (time && value == 0) || value > 1e12) {
        return refuse(fields[i], time ? "microseconds > 0" : "a number >= 0");
      }
      row.numbers.push_back(value);
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return invalid_argument(fmt::format("{}: found no rows", path));
  return rows;
}

// Points in rising order, doubles averaged.
Line line_of(std::vector<std::pair<double, double>> points) {
  std::sort(points.begin(), points.end());
  Line line;
  for (size_t i = 0; i < points.size();) {
    double sum = 0;
    const size_t first = i;
    for (; i < points.size() && points[i].first == points[first].first; ++i) {
      sum += points[i].second;
    }
    line.add(points[first].first, sum / static_cast<double>(i - first));
  }
  return line;
}

Surface surface_of(const std::vector<std::array<double, 3>>& points) {
  std::map<double, std::vector<std::pair<double, double>>> rows;
  for (const auto& [x, y, z] : points) rows[x].emplace_back(y, z);
  Surface surface;
  for (auto& [x, row] : rows) surface.row(x) = line_of(std::move(row));
  return surface;
}

std::map<std::string, Line, std::less<>> by_name(const std::vector<Row>& rows) {
  std::map<std::string, std::vector<std::pair<double, double>>> points;
  for (const Row& row : rows) {
    points[std::string(row.word)].emplace_back(row.numbers[0], row.numbers[1]);
  }
  std::map<std::string, Line, std::less<>> lines;
  for (auto& [name, its] : points) lines.emplace(name, line_of(std::move(its)));
  return lines;
}

bool is_power_of_two(double x) {
  return x == 0 || (x >= 1 && x < 1e15 && x == std::floor(x) &&
                    std::has_single_bit(static_cast<uint64_t>(x)));
}

AttentionTables attention_of(const std::vector<Row>& rows) {
  std::vector<std::array<double, 3>> decode, prefill;
  std::array<std::set<double>, 4> axes;
  const auto mixed_point = [](const std::vector<double>& n) {
    return n[0] > 0 && n[2] > 0 && std::all_of(n.begin(), n.begin() + 4, is_power_of_two);
  };
  for (const auto& [word, n] : rows) {
    if (n[0] == 0) decode.push_back({n[2], n[3], n[4]});
    if (n[2] == 0) prefill.push_back({n[0], n[1], n[4]});
    if (!mixed_point(n)) continue;
    for (size_t i = 0; i < 4; ++i) axes[i].insert(n[i]);
  }
  AttentionTables out;
  out.decode = surface_of(decode);
  out.prefill = surface_of(prefill);
  size_t size = 1;
  for (size_t i = 0; i < 4; ++i) {
    out.axes[i].assign(axes[i].begin(), axes[i].end());
    size *= axes[i].size();
  }
  out.ratios.assign(size, 1.0F);
  for (const auto& [word, n] : rows) {
    if (!mixed_point(n)) continue;
    size_t index = 0;
    for (size_t i = 0; i < 4; ++i) {
      const auto& axis = out.axes[i];
      const auto place = std::lower_bound(axis.begin(), axis.end(), n[i]) - axis.begin();
      index = index * axis.size() + static_cast<size_t>(place);
    }
    const double alone = out.decode.at(n[2], n[3]) + out.prefill.at(n[0], n[1]);
    out.ratios[index] = static_cast<float>(n[4] / alone);
  }
  return out;
}

}  // namespace

double Line::at(double x) const {
  if (points_.empty()) return 0;
  if (points_.size() == 1 || x <= points_.front().first) return points_.front().second;
  auto above =
      std::upper_bound(points_.begin(), points_.end(), x,
                       [](double value, const auto& point) { return value < point.first; });
  if (above == points_.end()) --above;
  const auto& [x0, y0] = *(above - 1);
  const auto& [x1, y1] = *above;
  return std::max(0.0, y0 + (x - x0) / (x1 - x0) * (y1 - y0));
}

double Surface::at(double x, double y) const {
  if (rows_.empty()) return 0;
  auto above = rows_.upper_bound(x);
  if (above == rows_.begin() || rows_.size() == 1) return rows_.begin()->second.at(y);
  if (above == rows_.end()) --above;
  const auto below = std::prev(above);
  const double low = below->second.at(y), high = above->second.at(y);
  return std::max(0.0, low + (x - below->first) / (above->first - below->first) * (high - low));
}

double AttentionTables::ratio(const std::array<double, 4>& at) const {
  if (ratios.empty()) return 1;
  // Straight in the logarithm, for the points are; 0 is a place before 1.
  const auto scale = [](double x) {
    return x < 1 ? x - 1 : core::math::log(x) / 0.6931471805599453;
  };
  std::array<size_t, 4> low{};
  std::array<double, 4> fraction{};
  for (size_t i = 0; i < 4; ++i) {
    const auto& axis = axes[i];
    const double x = std::clamp(at[i], axis.front(), axis.back());
    const auto above = std::upper_bound(axis.begin(), axis.end(), x) - axis.begin();
    low[i] = static_cast<size_t>(std::max<std::ptrdiff_t>(above - 1, 0));
    if (low[i] + 1 >= axis.size()) continue;
    const double x0 = scale(axis[low[i]]), x1 = scale(axis[low[i] + 1]);
    fraction[i] = (scale(x) - x0) / (x1 - x0);
  }
  double sum = 0;
  for (unsigned corner = 0; corner < 16; ++corner) {
    double weight = 1;
    size_t index = 0;
    for (size_t i = 0; i < 4; ++i) {
      const bool upper = ((corner >> i) & 1U) != 0;
      weight *= upper ? fraction[i] : 1 - fraction[i];
      index = index * axes[i].size() + std::min(low[i] + (upper ? 1 : 0), axes[i].size() - 1);
    }
    if (weight > 0) sum += weight * static_cast<double>(ratios[index]);
  }
  return sum;
}

Result<ProfileTables> parse_profile(const ProfileTexts& texts) {
  ProfileTables out;
  const auto dense = parse_table(texts, "dense.csv", texts.dense, "layer,tokens,time_us");
  if (!dense) return dense.error();
  out.dense = by_name(*dense);
  const auto sequences =
      parse_table(texts, "per_sequence.csv", texts.per_sequence, "layer,sequences,time_us");
  if (!sequences) return sequences.error();
  out.per_sequence = by_name(*sequences);
  const auto attention = parse_table(texts, "attention.csv", texts.attention,
                                     "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us");
  if (!attention) return attention.error();
  out.attention = attention_of(*attention);
  if (out.attention.decode.empty() || out.attention.prefill.empty()) {
    return invalid_argument(
        fmt::format("{}/attention.csv: found no rows of decode or of prefill alone, expected both",
                    texts.folder));
  }
  if (texts.moe.empty()) return out;
  const auto moe = parse_table(texts, "moe.csv", texts.moe, "tokens,activated_experts,time_us");
  if (!moe) return moe.error();
  std::vector<std::array<double, 3>> points;
  for (const Row& row : *moe) points.push_back({row.numbers[0], row.numbers[1], row.numbers[2]});
  out.moe = surface_of(points);
  return out;
}

Result<ProfileTables> read_profile(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path given(path);
  const bool folder = std::filesystem::is_directory(given, ignored);
  if (!folder && !std::filesystem::exists(given, ignored)) {
    return invalid_argument(fmt::format("{}: no such file or folder", path));
  }
  const std::filesystem::path from = folder ? given : given.parent_path();
  ProfileTexts texts;
  texts.folder = from.string();
  for (const auto& [name, target] : {std::pair{"dense.csv", &texts.dense},
                                     {"per_sequence.csv", &texts.per_sequence},
                                     {"attention.csv", &texts.attention},
                                     {"moe.csv", &texts.moe}}) {
    if (target == &texts.moe && !std::filesystem::exists(from / name, ignored)) continue;
    auto text = core::read_file((from / name).string());
    if (!text) return text.error();
    *target = std::move(text).value();
  }
  return parse_profile(texts);
}

}  // namespace prony::emulate
