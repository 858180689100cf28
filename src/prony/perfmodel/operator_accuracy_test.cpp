// Gate: the time of single operators against a sample of public kernel tables (validation/README.md
// says where it is from and how it was drawn). The medians are what `./run validate` reports, by
// way of the properties of this test.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "prony/catalog/hardware_file.hpp"
#include "prony/core/file.hpp"
#include "prony/perfmodel/collectives.hpp"
#include "prony/perfmodel/efficiency.hpp"

namespace prony::perfmodel {
namespace {

struct Line {
  std::string op, hardware, format;
  double a = 0, b = 0, c = 0, d = 0, e = 0, ms = 0;
};

std::vector<Line> lines() {
  const auto text = core::read_file(std::string(PRONY_SOURCE_DIR) + "/validation/operators.csv");
  std::istringstream in(text.value());
  std::string row;
  std::getline(in, row);
  std::vector<Line> out;
  while (std::getline(in, row)) {
    std::vector<std::string> cells;
    std::istringstream cut(row);
    for (std::string cell; std::getline(cut, cell, ',');) cells.push_back(cell);
    EXPECT_EQ(cells.size(), 9U) << row;
    Line line{cells[0], cells[1], cells[2]};
    double* const numbers[] = {&line.a, &line.b, &line.c, &line.d, &line.e, &line.ms};
    for (size_t i = 0; i < 6; ++i) {
      const std::string& cell = cells[3 + i];
      const auto [end, error] =
          std::from_chars(cell.data(), cell.data() + cell.size(), *numbers[i]);
      EXPECT_TRUE(error == std::errc() && end == cell.data() + cell.size()) << row;
    }
    out.push_back(std::move(line));
  }
  return out;
}

double seconds(const Line& line, const catalog::HardwareSpec& hw) {
  if (line.op == "gemm") {
    const double m = line.a, n = line.b, k = line.c;
    const bool eight = line.format == "fp8";
    const double width = eight ? 1 : 2;
    return gemm_time(eight ? hw.gemm8 : hw.gemm16, eight ? hw.peak_fp8 : hw.peak_bf16,
                     hw.memory_bandwidth, hw.units, m, n, k, 1, width * (n * k + m * k) + 2 * m * n)
        .seconds;
  }
  if (line.op == "all-reduce") {
    const auto kind = line.format == "engine" ? catalog::AllReduceKind::kCustom
                                              : catalog::AllReduceKind::kLibrary;
    return all_reduce(hw, kind, static_cast<int32_t>(line.a), line.b).seconds;
  }
  const double rows = line.a, tokens = line.b, heads = line.c, kv_heads = line.d, dim = line.e;
  const bool prefill = line.op == "attention-prefill";
  const double keys = rows * (prefill ? tokens : tokens + 1);
  const double pairs = prefill ? rows * tokens * (tokens + 1) / 2 : keys;
  const double flops = 4 * dim * heads * pairs, bytes = 2 * 2 * kv_heads * dim * keys;
  return prefill ? prefill_attention_time(hw, flops, bytes, rows, heads, tokens).seconds
                 : decode_attention_time(hw, flops, bytes, false).seconds;
}

double at(const std::vector<double>& sorted, double p) {
  return sorted[static_cast<size_t>(p * static_cast<double>(sorted.size() - 1))];
}

TEST(OperatorAccuracy, MediansOnThePublicTablesStayWithinTheirGates) {
  // Median size of predicted / measured - 1, with a little room.
  const std::map<std::string, double> gates = {
      {"gemm", 0.13}, {"attention-prefill", 0.1}, {"attention-decode", 0.19}, {"all-reduce", 0.19}};
  std::map<std::string, std::vector<double>> errors;
  for (const Line& line : lines()) {
    const auto hardware = catalog::resolve_hardware(line.hardware).value();
    const double error = seconds(line, hardware) * 1e3 / line.ms - 1;
    errors[line.op + " " + line.hardware + " " + line.format].push_back(error);
  }
  ASSERT_GE(errors.size(), 12U);
  for (auto& [name, all] : errors) {
    double bias = 0;
    for (double& error : all) {
      bias += error / static_cast<double>(all.size());
      error = std::abs(error);
    }
    std::sort(all.begin(), all.end());
    RecordProperty(name, fmt::format("{} {:.3f} {:.3f} {:+.3f}", all.size(), at(all, 0.5),
                                     at(all, 0.9), bias));
    const double gate = gates.at(name.substr(0, name.find(' ')));
    EXPECT_LE(at(all, 0.5), gate) << name;
    EXPECT_GE(all.size(), 20U) << name;
    EXPECT_GT(at(all, 0.5), 0.002) << name << ": too good to be true, is the sample still read?";
  }
}

}  // namespace
}  // namespace prony::perfmodel
