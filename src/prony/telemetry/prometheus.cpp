#include "prony/telemetry/prometheus.hpp"

#include <charconv>
#include <optional>

namespace prony::telemetry {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// The characters of a metric name; label names lack the colon, which costs nothing to allow.
bool is_name(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
  return letter || (!first && c >= '0' && c <= '9');
}

// Reads one line from its front.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  void skip_blanks() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
  }
  bool done() const { return rest_.empty(); }
  bool at(char c) const { return !rest_.empty() && rest_.front() == c; }
  bool take(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Empty if there is none.
  std::string_view name() {
    size_t n = 0;
    while (n < rest_.size() && is_name(rest_[n], n == 0)) ++n;
    return cut(n);
  }

  // "..." with \\, \" and \n escaped; the text between the quotes as it stands.
  std::optional<std::string_view> quoted() {
    if (!take('"')) return std::nullopt;
    for (size_t n = 0; n < rest_.size(); ++n) {
      if (rest_[n] == '\\') {
        ++n;
      } else if (rest_[n] == '"') {
        const auto text = cut(n);
        rest_.remove_prefix(1);
        return text;
      }
    }
    return std::nullopt;
  }

  std::optional<double> number() {
    size_t n = 0;
    while (n < rest_.size() && !is_blank(rest_[n])) ++n;
    auto text = cut(n);
    if (text.starts_with('+')) text.remove_prefix(1);  // "+Inf", which from_chars does not take
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  }

 private:
  std::string_view cut(size_t n) {
    const auto text = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return text;
  }
  std::string_view rest_;
};

// {name="value",...}; a quoted text without '=' is the metric's name, as Prometheus 3 writes names
// outside the old alphabet.
bool read_labels(Line& line, std::string_view& metric) {
  for (;;) {
    line.skip_blanks();
    if (line.take('}')) return true;
    if (line.at('"')) {
      const auto name = line.quoted();
      if (!name || !metric.empty()) return false;
      metric = *name;
    } else {
      if (line.name().empty()) return false;
      line.skip_blanks();
      if (!line.take('=')) return false;
      line.skip_blanks();
      if (!line.quoted()) return false;
    }
    line.skip_blanks();
    if (!line.take(',') && !line.at('}')) return false;
  }
}

std::optional<MetricSample> read_sample(Line line) {
  MetricSample sample;
  sample.name = line.name();
  line.skip_blanks();
  if (line.take('{') && !read_labels(line, sample.name)) return std::nullopt;
  if (sample.name.empty()) return std::nullopt;
  line.skip_blanks();
  const auto value = line.number();
  if (!value) return std::nullopt;
  sample.value = *value;
  line.skip_blanks();
  if (!line.done() && !line.at('#')) {  // a time stamp
    if (!line.number()) return std::nullopt;
    line.skip_blanks();
  }
  if (!line.done() && !line.at('#')) return std::nullopt;  // an exemplar may follow
  return sample;
}

}  // namespace

MetricsText parse_metrics_text(std::string_view text) {
  MetricsText out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (content.ends_with('\r')) content.remove_suffix(1);
    Line line(content);
    line.skip_blanks();
    if (line.done() || line.at('#')) continue;
    if (const auto sample = read_sample(line)) {
      out.samples.push_back(*sample);
    } else {
      ++out.bad_lines;
    }
  }
  return out;
}

}  // namespace prony::telemetry
