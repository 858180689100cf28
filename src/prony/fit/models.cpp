#include "prony/fit/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace prony::fit {
namespace {

using Span = std::span<const double>;

// Weighted linear least squares over columns made from each row; also the weighted sum of squares.
struct Linear {
  std::vector<double> p;
  double squares = std::numeric_limits<double>::infinity();
};
template <class Basis>
Linear linear_fit(const Matrix& x, Span y, Span weights, size_t terms, Basis basis) {
  Matrix a(x.rows(), terms);
  std::vector<double> b(x.rows());
  for (size_t row = 0; row < x.rows(); ++row) {
    basis(x.row(row), a.row(row));
    for (double& term : a.row(row)) term *= weights[row];
    b[row] = y[row] * weights[row];
  }
  Linear out{solve(scaled_svd(a), b), 0};
  for (size_t row = 0; row < x.rows(); ++row) {
    double value = 0;
    for (size_t i = 0; i < terms; ++i) value += a.at(row, i) * out.p[i];
    out.squares += (value - b[row]) * (value - b[row]);
  }
  return out;
}

// --- surface ---

double surface(Span x, Span p) {
  const double area = x[0] * x[1];
  return area / (p[0] * area + p[1] * x[0] + p[2] * x[1] + p[3]);
}

void surface_gradient(Span x, Span p, std::span<double> out) {
  const double area = x[0] * x[1], t = surface(x, p), factor = -t * t / area;
  out[0] = factor * area;
  out[1] = factor * x[0];
  out[2] = factor * x[1];
  out[3] = factor;
}

std::vector<double> surface_start(const Matrix& x, Span y, Span weights) {
  // B L / T is linear in the parameters; an error of T there is T^2 / (B L) times as large.
  std::vector<double> target(y.size()), scaled(y.size());
  for (size_t row = 0; row < y.size(); ++row) {
    const double area = x.at(row, 0) * x.at(row, 1);
    target[row] = area / y[row];
    scaled[row] = weights[row] * y[row] * y[row] / area;
  }
  return linear_fit(x, target, scaled, 4,
                    [](Span in, std::span<double> out) {
                      out[0] = in[0] * in[1];
                      out[1] = in[0];
                      out[2] = in[1];
                      out[3] = 1;
                    })
      .p;
}

// --- power ---

double power(Span x, Span p) {
  return p[0] * std::pow(x[0], p[1]) + p[2];
}

void power_gradient(Span x, Span p, std::span<double> out) {
  const double raised = std::pow(x[0], p[1]);
  out[0] = raised;
  out[1] = p[0] * raised * std::log(x[0]);
  out[2] = 1;
}

std::vector<double> power_start(const Matrix& x, Span y, Span weights) {
  // Linear for a fixed exponent; a grid is fine enough for the descent to find the rest.
  Linear best;
  double exponent = 1;
  for (int i = 1; i <= 80; ++i) {
    const double b = 0.05 * i;
    auto next = linear_fit(x, y, weights, 2, [b](Span in, std::span<double> out) {
      out[0] = std::pow(in[0], b);
      out[1] = 1;
    });
    if (next.squares < best.squares) {
      best = std::move(next);
      exponent = b;
    }
  }
  return {best.p[0], exponent, best.p[1]};
}

// --- alpha-beta ---

double line(Span x, Span p) {
  return p[0] + x[0] / p[1];
}

void line_gradient(Span x, Span p, std::span<double> out) {
  out[0] = 1;
  out[1] = -x[0] / (p[1] * p[1]);
}

std::vector<double> line_start(const Matrix& x, Span y, Span weights) {
  const auto fit = linear_fit(x, y, weights, 2, [](Span in, std::span<double> out) {
    out[0] = 1;
    out[1] = in[0];
  });
  return {fit.p[0], 1 / fit.p[1]};
}

// --- knee ---

double knee(Span x, Span p) {
  return p[0] + p[1] * x[0] + (p[2] - p[1]) * std::max(0.0, x[0] - p[3]);
}

void knee_gradient(Span x, Span p, std::span<double> out) {
  const double beyond = std::max(0.0, x[0] - p[3]);
  out[0] = 1;
  out[1] = x[0] - beyond;
  out[2] = beyond;
  out[3] = x[0] > p[3] ? p[1] - p[2] : 0;
}

std::vector<double> knee_start(const Matrix& x, Span y, Span weights) {
  // Linear for a fixed knee. Between two neighbouring values the sum of squares is smooth, so the
  // best of a fine grid inside the range starts the descent in the right piece.
  double low = x.at(0, 0), high = low;
  for (size_t row = 0; row < x.rows(); ++row) {
    low = std::min(low, x.at(row, 0));
    high = std::max(high, x.at(row, 0));
  }
  Linear best;
  double place = low;
  constexpr int kGrid = 200;
  for (int i = 1; i < kGrid; ++i) {
    const double at = low + (high - low) * i / kGrid;
    auto next = linear_fit(x, y, weights, 3, [at](Span in, std::span<double> out) {
      const double beyond = std::max(0.0, in[0] - at);
      out[0] = 1;
      out[1] = in[0] - beyond;
      out[2] = beyond;
    });
    if (next.squares < best.squares) {
      best = std::move(next);
      place = at;
    }
  }
  return {best.p[0], best.p[1], best.p[2], place};
}

// --- engine ---

double engine_time(Span x, Span p) {
  return p[0] * x[0] + p[1] * x[1] + p[2] * x[2] + x[3];
}

void engine_gradient(Span x, Span, std::span<double> out) {
  std::copy(x.begin(), x.begin() + 3, out.begin());
}

// Around one, so that a part which no row has keeps its factor.
std::vector<double> engine_start(const Matrix& x, Span y, Span weights) {
  std::vector<double> beyond(y.size());
  constexpr double kOnes[] = {1, 1, 1};
  for (size_t row = 0; row < y.size(); ++row) beyond[row] = y[row] - engine_time(x.row(row), kOnes);
  auto p = linear_fit(x, beyond, weights, 3, [](Span in, std::span<double> out) {
             std::copy(in.begin(), in.begin() + 3, out.begin());
           }).p;
  for (double& factor : p) factor += 1;
  return p;
}

// --- step ---

double step(Span x, Span p) {
  return x[0] / p[0] + p[1] * x[1] + p[2];
}

void step_gradient(Span x, Span p, std::span<double> out) {
  out[0] = -x[0] / (p[0] * p[0]);
  out[1] = x[1];
  out[2] = 1;
}

std::vector<double> step_start(const Matrix& x, Span y, Span weights) {
  const auto fit = linear_fit(x, y, weights, 3, [](Span in, std::span<double> out) {
    out[0] = in[0];
    out[1] = in[1];
    out[2] = 1;
  });
  return {1 / fit.p[0], fit.p[1], fit.p[2]};
}

}  // namespace

const std::vector<Model>& models() {
  static const std::vector<Model> kModels = {
      {"surface",
       "T = B L / (alpha B L + beta B + gamma L + delta)",
       {{"batch"}, {"length"}},
       {"throughput"},
       {{"alpha", "1/throughput"},
        {"beta", "tokens/throughput"},
        {"gamma", "sequences/throughput"},
        {"delta", "sequences*tokens/throughput"}},
       Residuals::kRelative,
       {},
       surface,
       surface_gradient,
       surface_start},
      {"power",
       "y = a n^b + c",
       {{"length"}},
       {"latency_ms"},
       {{"a", "ms"}, {"b", "1"}, {"c", "ms"}},
       Residuals::kRelative,
       {},
       power,
       power_gradient,
       power_start},
      {"alpha-beta",
       "t = alpha + bytes / bandwidth",
       {{"bytes", false}},
       {"time_us"},
       {{"alpha", "us"}, {"bandwidth", "B/us"}},
       Residuals::kRelative,
       {},
       line,
       line_gradient,
       line_start},
      {"knee",
       "y = y0 + s1 x + (s2 - s1) max(0, x - knee)",
       {{"x", false}},
       {"y", false},
       {{"y0", "y"}, {"s1", "y/x"}, {"s2", "y/x"}, {"knee", "x"}},
       Residuals::kAbsolute,
       {},
       knee,
       knee_gradient,
       knee_start},
      {"engine",
       "t = device device_ms + link link_ms + engine engine_ms + rest_ms",
       {{"device_ms", false}, {"link_ms", false}, {"engine_ms", false}, {"rest_ms", false}},
       {"time_ms"},
       {{"device", "1"}, {"link", "1"}, {"engine", "1"}},
       Residuals::kRelative,
       {0.2, 0.3, 0.3},
       engine_time,
       engine_gradient,
       engine_start},
      {"step",
       "t = roof / efficiency + per_layer layers + overhead",
       {{"roof_ms"}, {"layers"}},
       {"time_ms"},
       {{"efficiency", "1"}, {"per_layer", "ms"}, {"overhead", "ms"}},
       Residuals::kRelative,
       {},
       step,
       step_gradient,
       step_start},
  };
  return kModels;
}

Result<const Model*> find_model(std::string_view name) {
  std::string known;
  for (const auto& model : models()) {
    if (model.name == name) return &model;
    known += fmt::format(" {}", model.name);
  }
  return invalid_argument(fmt::format("--model: found '{}', expected one of{}", name, known));
}

}  // namespace prony::fit
