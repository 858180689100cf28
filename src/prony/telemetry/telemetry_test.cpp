// Tests of environment capture and host sampling: against a /proc of our own making, and that the
// real one gives an environment which the record accepts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "prony/core/clock.hpp"
#include "prony/core/file.hpp"
#include "prony/record/sample_record.hpp"
#include "prony/telemetry/environment.hpp"
#include "prony/telemetry/host_sampler.hpp"

namespace prony::telemetry {
namespace {

class FakeProc {
 public:
  FakeProc() : path_(::testing::TempDir() + "prony_proc_XXXXXX") {
    PRONY_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~FakeProc() { std::filesystem::remove_all(path_); }
  void write(const char* name, std::string_view content) const {
    PRONY_CHECK(core::write_file_atomic(path_ + "/" + name, content).ok());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(CpuTimes, ReadsTheSumOfAllCores) {
  const auto times =
      parse_cpu_times("cpu  10 20 30 40 5 6 7 8 99 99\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 1\n").value();
  EXPECT_EQ(times.user, 10U);
  EXPECT_EQ(times.steal, 8U);
  EXPECT_EQ(times.total(), 126U);  // guest is part of user
  EXPECT_EQ(times.busy(), 73U);
}

TEST(CpuTimes, OldKernelsAndOtherOrders) {
  EXPECT_EQ(parse_cpu_times("intr 5\ncpu0 1 1 1 1\ncpu  1 2 3 4\n").value().total(), 10U);
  EXPECT_EQ(parse_cpu_times("cpu  1 2 3 4").value().idle, 4U);
  EXPECT_EQ(parse_cpu_times("").error().message, "/proc/stat: found no line 'cpu ...'");
  EXPECT_EQ(parse_cpu_times("cpu0 1 2 3 4\n").error().message,
            "/proc/stat: found no line 'cpu ...'");
  EXPECT_EQ(parse_cpu_times("cpu  1 2 x\n5 6").error().message,
            "/proc/stat: line 'cpu ...': found 2 numbers, expected at least 4");
  EXPECT_FALSE(parse_cpu_times("cpu  1 2 3\n4 5 6\n").ok());  // never into the next line
}

TEST(HostSampler, SharesOverTheInterval) {
  const FakeProc proc;
  HostSampler sampler(proc.path());
  sampler.start();
  EXPECT_FALSE(sampler.shares().has_value());  // no file at all
  proc.write("stat", "cpu  100 0 100 800 0 0 0 0\n");
  EXPECT_FALSE(sampler.shares().has_value());  // none at start()
  sampler.start();
  EXPECT_FALSE(sampler.shares().has_value());             // no tick has passed
  proc.write("stat", "cpu  150 10 120 890 10 5 5 10\n");  // 200 ticks: 90 busy, 10 io, 10 stolen
  const auto shares = sampler.shares();
  ASSERT_TRUE(shares.has_value());
  EXPECT_DOUBLE_EQ(shares->steal, 0.05);
  EXPECT_DOUBLE_EQ(shares->busy, 0.45);
  EXPECT_DOUBLE_EQ(shares->iowait, 0.05);
  // Asked again, the interval still begins at start().
  proc.write("stat", "cpu  100 0 100 1000 0 0 0 200\n");
  EXPECT_DOUBLE_EQ(sampler.shares()->steal, 0.5);
}

TEST(HostSampler, CountersThatStepBackAreNoShare) {
  const FakeProc proc;
  HostSampler sampler(proc.path());
  proc.write("stat", "cpu  100 0 0 100 50 0 0 50\n");
  sampler.start();
  proc.write("stat", "cpu  100 0 0 400 40 0 0 49\n");
  ASSERT_TRUE(sampler.shares().has_value());
  EXPECT_EQ(sampler.shares()->steal, 0);
  EXPECT_EQ(sampler.shares()->iowait, 0);
}

TEST(HostSampler, LoadAverage) {
  const FakeProc proc;
  EXPECT_FALSE(HostSampler(proc.path()).load_average().has_value());
  proc.write("loadavg", "1.25 0.50 0.10 2/345 6789\n");
  EXPECT_EQ(HostSampler(proc.path()).load_average(), 1.25);
  proc.write("loadavg", "nan\n");
  EXPECT_FALSE(HostSampler(proc.path()).load_average().has_value());
}

TEST(HostSampler, RealHostIsBusyWhileWeAre) {
  HostSampler sampler;
  sampler.start();
  const auto deadline = core::monotonic_ns() + 60 * core::kNanosPerMilli;
  while (core::monotonic_ns() < deadline) {
  }
  const auto shares = sampler.shares();
  ASSERT_TRUE(shares.has_value());
  EXPECT_GT(shares->busy + shares->steal, 0);
  EXPECT_LE(shares->busy + shares->steal + shares->iowait, 1 + 1e-9);
}

TEST(Environment, FromAFakeProc) {
  const FakeProc proc;
  proc.write("cpuinfo",
             "processor\t: 0\nmodel name\t: Example CPU @ 2.0GHz\nmodel name\t: other\n");
  proc.write("meminfo", "MemTotal:       24684084 kB\nMemFree: 1 kB\n");
  proc.write("loadavg", "0.75 0 0 1/1 1\n");
  const auto environment = capture_environment(proc.path());
  EXPECT_EQ(environment.cpu, "Example CPU @ 2.0GHz");
  EXPECT_EQ(environment.memory_bytes, 24684084LL * 1024);
  EXPECT_EQ(environment.load_average, 0.75);
  EXPECT_FALSE(environment.steal_fraction.has_value());
  proc.write("cpuinfo", "CPU part\t: 0xd40\n");
  EXPECT_EQ(capture_environment(proc.path()).cpu, "0xd40");
}

TEST(Environment, WithoutProcIsUnknownNotAnError) {
  const auto environment = capture_environment("/no/such/proc");
  EXPECT_EQ(environment.cpu, "unknown");
  EXPECT_EQ(environment.memory_bytes, 0);
  EXPECT_EQ(environment.load_average, 0);
}

TEST(Environment, OfThisHostIsAcceptedByTheRecord) {
  auto record = record::sample_record();
  record.environment = capture_environment();
  const auto text = record::record_text(record);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_GE(record.environment.cores, 1);
  EXPECT_GT(record.environment.memory_bytes, 1 << 20);
  EXPECT_NE(record.environment.compiler, "unknown");
  EXPECT_TRUE(record.environment.kernel.starts_with("Linux "));
}

}  // namespace
}  // namespace prony::telemetry
