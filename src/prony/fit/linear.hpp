// Small dense least squares by singular values: a fit has thousands of rows and a handful of
// columns, and what matters is to know which combinations of parameters the data do not fix.
// Thread safety: values and pure functions. Source: one-sided Jacobi, Hestenes 1958.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace prony::fit {

/// Row-major, [rows, columns].
class Matrix {
 public:
  Matrix(size_t rows, size_t columns) : rows_(rows), columns_(columns), data_(rows * columns) {}
  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  double& at(size_t row, size_t column) { return data_[row * columns_ + column]; }
  double at(size_t row, size_t column) const { return data_[row * columns_ + column]; }
  std::span<double> row(size_t index) { return {data_.data() + index * columns_, columns_}; }
  std::span<const double> row(size_t index) const {
    return {data_.data() + index * columns_, columns_};
  }

 private:
  size_t rows_, columns_;
  std::vector<double> data_;
};

/// A = U diag(sigma) V^T after the columns of A were divided by `scale` (their norms; 1 where a
/// column is zero), so that units do not enter the singular values. sigma descends.
struct Svd {
  Matrix u;  // [rows, columns]
  Matrix v;  // [columns, columns]
  std::vector<double> sigma, scale;
  /// sigma_max / sigma_min; infinity for a singular matrix.
  double condition() const;
};
/// Requires rows >= columns (checked).
Svd scaled_svd(const Matrix& a);

/// Singular values below this share of the largest are zero: the data say nothing about that
/// combination of parameters.
inline constexpr double kRankTolerance = 1e-10;

/// Least-squares solution of A x = b with the smallest norm; damping adds lambda to sigma^2.
std::vector<double> solve(const Svd& svd, std::span<const double> b, double lambda = 0);

/// (A^T A)^-1, [columns, columns]; directions below the rank tolerance are left out.
Matrix inverse_gram(const Svd& svd);

}  // namespace prony::fit
