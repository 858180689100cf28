#include "prony/fit/linear.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "prony/core/check.hpp"

namespace prony::fit {
namespace {

constexpr int kSweepsMax = 60;

// Rotates columns i and j of `u` (and `v`) until they are orthogonal; true if they were not.
bool rotate(Matrix& u, Matrix& v, size_t i, size_t j) {
  double ii = 0, jj = 0, ij = 0;
  for (size_t row = 0; row < u.rows(); ++row) {
    ii += u.at(row, i) * u.at(row, i);
    jj += u.at(row, j) * u.at(row, j);
    ij += u.at(row, i) * u.at(row, j);
  }
  if (std::abs(ij) <= 1e-16 * std::sqrt(ii * jj)) return false;
  const double zeta = (jj - ii) / (2 * ij);
  const double t = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  const double c = 1 / std::sqrt(1 + t * t), s = c * t;
  const auto turn = [c, s, i, j](Matrix& m) {
    for (size_t row = 0; row < m.rows(); ++row) {
      const double a = m.at(row, i), b = m.at(row, j);
      m.at(row, i) = c * a - s * b;
      m.at(row, j) = s * a + c * b;
    }
  };
  turn(u);
  turn(v);
  return true;
}

double column_norm(const Matrix& m, size_t column) {
  double sum = 0;
  for (size_t row = 0; row < m.rows(); ++row) sum += m.at(row, column) * m.at(row, column);
  return std::sqrt(sum);
}

Matrix permuted(const Matrix& m, const std::vector<size_t>& order) {
  Matrix out(m.rows(), m.columns());
  for (size_t row = 0; row < m.rows(); ++row) {
    for (size_t column = 0; column < m.columns(); ++column) {
      out.at(row, column) = m.at(row, order[column]);
    }
  }
  return out;
}

}  // namespace

double Svd::condition() const {
  if (sigma.empty() || sigma.back() == 0) return std::numeric_limits<double>::infinity();
  return sigma.front() / sigma.back();
}

Svd scaled_svd(const Matrix& a) {
  const size_t n = a.columns();
  PRONY_CHECK(a.rows() >= n && n > 0, "least squares needs as many rows as columns");
  Svd out{a, Matrix(n, n), std::vector<double>(n), std::vector<double>(n, 1)};
  for (size_t column = 0; column < n; ++column) {
    out.v.at(column, column) = 1;
    const double norm = column_norm(a, column);
    if (norm > 0) out.scale[column] = norm;
    for (size_t row = 0; row < a.rows(); ++row) out.u.at(row, column) /= out.scale[column];
  }
  for (int sweep = 0; sweep < kSweepsMax; ++sweep) {
    bool turned = false;
    for (size_t i = 0; i + 1 < n; ++i) {
      for (size_t j = i + 1; j < n; ++j) turned = rotate(out.u, out.v, i, j) || turned;
    }
    if (!turned) break;
  }
  std::vector<double> norms(n);
  for (size_t column = 0; column < n; ++column) norms[column] = column_norm(out.u, column);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&norms](size_t x, size_t y) { return norms[x] > norms[y]; });
  out.u = permuted(out.u, order);
  out.v = permuted(out.v, order);
  for (size_t column = 0; column < n; ++column) {
    out.sigma[column] = norms[order[column]];
    if (out.sigma[column] == 0) continue;
    for (size_t row = 0; row < a.rows(); ++row) out.u.at(row, column) /= out.sigma[column];
  }
  return out;
}

std::vector<double> solve(const Svd& svd, std::span<const double> b, double lambda) {
  PRONY_CHECK(b.size() == svd.u.rows());
  const size_t n = svd.sigma.size();
  std::vector<double> out(n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    const double sigma = svd.sigma[i];
    if (sigma <= kRankTolerance * svd.sigma.front()) continue;
    double dot = 0;
    for (size_t row = 0; row < b.size(); ++row) dot += svd.u.at(row, i) * b[row];
    const double factor = dot * sigma / (sigma * sigma + lambda);
    for (size_t column = 0; column < n; ++column) out[column] += svd.v.at(column, i) * factor;
  }
  for (size_t column = 0; column < n; ++column) out[column] /= svd.scale[column];
  return out;
}

Matrix inverse_gram(const Svd& svd) {
  const size_t n = svd.sigma.size();
  Matrix out(n, n);
  for (size_t i = 0; i < n; ++i) {
    if (svd.sigma[i] <= kRankTolerance * svd.sigma.front()) continue;
    const double weight = 1 / (svd.sigma[i] * svd.sigma[i]);
    for (size_t row = 0; row < n; ++row) {
      for (size_t column = 0; column < n; ++column) {
        out.at(row, column) +=
            svd.v.at(row, i) * svd.v.at(column, i) * weight / (svd.scale[row] * svd.scale[column]);
      }
    }
  }
  return out;
}

}  // namespace prony::fit
