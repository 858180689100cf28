// Tests of the axes and the grid of a sweep: every form of values, every refusal, order and seeds.
#include "prony/load/sweep_axis.hpp"

#include <gtest/gtest.h>

#include <set>

#include "prony/core/rng.hpp"
#include "prony/load/sweep_grid.hpp"

namespace prony::load {
namespace {

using Texts = std::vector<std::string>;

Texts values(std::string_view text) {
  const auto axis = parse_sweep_axis(text);
  return axis.ok() ? axis.value().values : Texts{axis.error().message};
}

TEST(SweepAxis, Numbers) {
  EXPECT_EQ(values("concurrency=1,2,4"), (Texts{"1", "2", "4"}));
  EXPECT_EQ(values("concurrency=1:128:x2"), (Texts{"1", "2", "4", "8", "16", "32", "64", "128"}));
  EXPECT_EQ(values("c=1:100:x2").back(), "64");
  EXPECT_EQ(values("c=1-8*2"), (Texts{"1", "2", "4", "8"}));
  EXPECT_EQ(values("c=2:2:x2"), (Texts{"2"}));
  EXPECT_EQ(values("input-len=128:512:128"), (Texts{"128", "256", "384", "512"}));
  EXPECT_EQ(values("r=0.1:0.5:0.1"), (Texts{"0.1", "0.2", "0.3", "0.4", "0.5"}));
  EXPECT_EQ(values("r=0.25,1:4:x2,10,inf"), (Texts{"0.25", "1", "2", "4", "10", "inf"}));
  EXPECT_EQ(values("r=1:10:x1.5"), (Texts{"1", "1.5", "2.25", "3.375", "5.0625", "7.59375"}));
  EXPECT_EQ(values("r=0:2:1"), (Texts{"0", "1", "2"}));
  EXPECT_EQ(values("r=1e3"), (Texts{"1000"}));
}

TEST(SweepAxis, Refusals) {
  EXPECT_EQ(values("concurrency"),
            Texts{"--sweep concurrency: expected AXIS=VALUES, as in concurrency=1,2,4"});
  for (const char* text : {"=1", "a b=1", "c=", "-c=1"}) {
    EXPECT_NE(values(text)[0].find("expected AXIS=VALUES"), std::string::npos) << text;
  }
  EXPECT_EQ(values("c=1,x"),
            Texts{"--sweep c=1,x: found 'x', expected a number, a:b:step, a:b:xfactor or inf"});
  for (const char* text : {"c=1,,2", "c=1,", "c=1:2", "c=1:2:x", "c=1:2:3:4", "c=nan", "c=1*2"}) {
    EXPECT_NE(values(text)[0].find("expected a number"), std::string::npos) << text;
  }
  for (const char* text : {"c=4:1:x2", "c=1:4:x1", "c=0:4:x2", "c=1:4:0", "c=1:4:-1"}) {
    EXPECT_NE(values(text)[0].find("a range that rises"), std::string::npos) << text;
  }
  EXPECT_EQ(values("c=1,1:4:x2"), Texts{"--sweep c=1,1:4:x2: found '1' twice"});
  EXPECT_EQ(values("c=1:1000000:1"), Texts{"--sweep c=1:1000000:1: found more than 10000 values"});
  // Steps too small to be seen at this size end the range instead of never coming to its end.
  EXPECT_EQ(values("c=1e300:1e300:1").size(), 1u);
}

TEST(SweepAxis, Targets) {
  const auto axis =
      parse_sweep_axis("target=fp16=http://a:1/v1,int4=cmd:serve --a x,y --port 1,z=https://b")
          .value();
  EXPECT_EQ(axis.values, (Texts{"fp16", "int4", "z"}));
  EXPECT_EQ(axis.targets[0], (SweepTarget{"fp16", "http://a:1/v1", ""}));
  EXPECT_EQ(axis.targets[1], (SweepTarget{"int4", "", "serve --a x,y --port 1"}));
  EXPECT_EQ(axis.targets[2], (SweepTarget{"z", "https://b", ""}));
  for (const char* text : {"target=fp16", "target=a=ftp://x", "target=../x=http://a"}) {
    EXPECT_NE(values(text)[0].find("expected NAME=http"), std::string::npos) << text;
  }
  EXPECT_EQ(values("target=a=http://x,a=http://y"),
            Texts{"--sweep target=a=http://x,a=http://y: found 'a' twice"});
  EXPECT_EQ(values("target=a=cmd: "), Texts{"--sweep target=a=cmd: : found no command of 'a'"});
}

// Whatever is typed: an axis of distinct values or an error of one line, and never a crash.
TEST(SweepAxis, AnyText) {
  core::Rng rng(1);
  constexpr std::string_view kPieces[] = {
      "c",  "=",   ",",     "1",  "2",       ":",  "x",  "-",   "*",  "0.5",  "inf",    "1e9",
      "12", "cmd", "http:", "//", "target=", "\n", "x2", "nan", "a=", "cmd:", "1:8:x2", "\xff"};
  for (int i = 0; i < 20'000; ++i) {
    std::string text = rng.below(2) == 0 ? "c=" : "target=";
    for (auto n = rng.below(8); n > 0; --n) text += kPieces[rng.below(std::size(kPieces))];
    const auto axis = parse_sweep_axis(text);
    if (!axis.ok()) {
      EXPECT_TRUE(axis.error().message.starts_with("--sweep ")) << text;
      continue;
    }
    const auto& found = axis.value().values;
    EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), found.size()) << text;
    EXPECT_FALSE(found.empty()) << text;
    EXPECT_EQ(axis.value().is_target(), axis.value().name == "target") << text;
  }
}

SweepGrid grid_of(const std::vector<std::string>& texts, int64_t runs = 1, uint64_t seed = 0) {
  std::vector<SweepAxis> axes;
  for (const auto& text : texts) axes.push_back(parse_sweep_axis(text).value());
  return make_sweep_grid(std::move(axes), runs, seed).value();
}

Texts slugs(const SweepGrid& grid) {
  Texts out;
  for (const auto& cell : grid.cells) out.push_back(cell.slug);
  return out;
}

TEST(SweepGrid, LastAxisFastestTargetsSlowest) {
  EXPECT_EQ(slugs(grid_of({"a=1,2", "b=3,4"})),
            (Texts{"a=1,b=3", "a=1,b=4", "a=2,b=3", "a=2,b=4"}));
  const auto grid = grid_of({"a=1,2", "target=x=http://h,y=http://h"}, 2);
  EXPECT_EQ(slugs(grid), (Texts{"target=x,a=1,run=1", "target=x,a=2,run=1", "target=x,a=1,run=2",
                                "target=x,a=2,run=2", "target=y,a=1,run=1", "target=y,a=2,run=1",
                                "target=y,a=1,run=2", "target=y,a=2,run=2"}));
  EXPECT_EQ(grid.cells[0].target, 0u);
  EXPECT_EQ(grid.cells[7].target, 1u);
  EXPECT_EQ(grid_of({"a=1"}).cells[0].target, SIZE_MAX);
}

TEST(SweepGrid, SeedsBelongToTheLoad) {
  const auto grid = grid_of({"target=x=http://h,y=http://h", "a=1,2", "b=1,2"}, 2, 7);
  std::set<uint64_t> seeds;
  for (const auto& cell : grid.cells) seeds.insert(cell.seed);
  EXPECT_EQ(seeds.size(), 8u);  // 4 points x 2 runs; targets share
  EXPECT_EQ(grid.cells[0].seed, grid.cells[8].seed);
  // Other order, more values: the same cell keeps its seed. Another seed: other seeds.
  const auto grown = grid_of({"b=1,2,3", "a=1,2"}, 2, 7);
  EXPECT_EQ(grown.cells[0].seed, grid.cells[0].seed);
  EXPECT_NE(grid_of({"b=1,2,3", "a=1,2"}, 2, 8).cells[0].seed, grid.cells[0].seed);
}

TEST(SweepGrid, Refusals) {
  const auto message = [](std::vector<std::string> texts, int64_t runs) {
    std::vector<SweepAxis> axes;
    for (const auto& text : texts) axes.push_back(parse_sweep_axis(text).value());
    return make_sweep_grid(std::move(axes), runs, 0).error().message;
  };
  EXPECT_EQ(message({"a=1", "a=2"}, 1), "--sweep a: given twice");
  EXPECT_EQ(message({"a=1:1000:1", "b=1:1000:1"}, 1), "--sweep: found more than 100000 cells");
  EXPECT_EQ(message({"a=1:1000:1"}, 101), "--sweep: found more than 100000 cells");
}

}  // namespace
}  // namespace prony::load
