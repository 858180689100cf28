#include "prony/fit/linear.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "prony/core/rng.hpp"

namespace prony::fit {
namespace {

TEST(Svd, RebuildsTheMatrix) {
  core::Rng rng(3);
  for (int round = 0; round < 30; ++round) {
    const size_t columns = 1 + static_cast<size_t>(round % 5), rows = columns + 7;
    Matrix a(rows, columns);
    for (size_t i = 0; i < rows; ++i) {
      for (double& x : a.row(i)) x = 1e3 * rng.normal();
    }
    const auto svd = scaled_svd(a);
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (size_t k = 0; k < columns; ++k) {
          sum += svd.u.at(i, k) * svd.sigma[k] * svd.v.at(j, k);
        }
        EXPECT_NEAR(sum * svd.scale[j], a.at(i, j), 1e-9);
      }
    }
    for (size_t k = 1; k < columns; ++k) EXPECT_GE(svd.sigma[k - 1], svd.sigma[k]);
  }
}

TEST(Svd, SolvesTheNormalEquations) {
  core::Rng rng(4);
  Matrix a(20, 3);
  std::vector<double> b(20);
  for (size_t i = 0; i < 20; ++i) {
    for (double& x : a.row(i)) x = rng.normal();
    b[i] = rng.normal();
  }
  const auto x = solve(scaled_svd(a), b);
  for (size_t j = 0; j < 3; ++j) {  // A^T (A x - b) = 0
    double dot = 0;
    for (size_t i = 0; i < 20; ++i) {
      dot += a.at(i, j) * (a.at(i, 0) * x[0] + a.at(i, 1) * x[1] + a.at(i, 2) * x[2] - b[i]);
    }
    EXPECT_NEAR(dot, 0, 1e-12);
  }
  const auto inverse = inverse_gram(scaled_svd(a));
  for (size_t i = 0; i < 3; ++i) {  // (A^T A) (A^T A)^-1 = I
    for (size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) {
        double gram = 0;
        for (size_t row = 0; row < 20; ++row) gram += a.at(row, i) * a.at(row, k);
        sum += gram * inverse.at(k, j);
      }
      EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-12);
    }
  }
}

TEST(Svd, EqualColumnsAreOneDirection) {
  Matrix a(5, 2);
  for (size_t i = 0; i < 5; ++i) a.at(i, 0) = a.at(i, 1) = static_cast<double>(i + 1);
  const auto svd = scaled_svd(a);
  EXPECT_LT(svd.sigma[1] / svd.sigma[0], kRankTolerance);
  const std::vector<double> b = {2, 4, 6, 8, 10};
  const auto x = solve(svd, b);  // the smallest solution shares evenly
  EXPECT_NEAR(x[0], 1, 1e-12);
  EXPECT_NEAR(x[1], 1, 1e-12);
}

}  // namespace
}  // namespace prony::fit
