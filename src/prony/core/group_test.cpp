// Tests of the group: ranks as threads over a transport in memory, for sizes 1 to 5; clocks that
// are wrong on purpose; ranks that fail or never come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "prony/core/group.hpp"
#include "prony/core/mpi_transport.hpp"

namespace prony::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Nanos kEnough = 20 * kNanosPerSecond;

// Queues between every two ranks.
class Exchange {
 public:
  explicit Exchange(int size) : size_(size) {}

  class Port final : public Transport {
   public:
    Port(Exchange& exchange, int rank) : exchange_(exchange), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return exchange_.size_; }
    Result<void> send(int to, std::string_view bytes, Nanos) override {
      const std::lock_guard lock(exchange_.mutex_);
      exchange_.queues_[{rank_, to}].emplace_back(bytes);
      exchange_.changed_.notify_all();
      return {};
    }
    Result<std::string> receive(int from, Nanos t_give_up_ns) override {
      std::unique_lock lock(exchange_.mutex_);
      auto& queue = exchange_.queues_[{from, rank_}];
      const auto wait = std::chrono::nanoseconds(t_give_up_ns - monotonic_ns());
      if (!exchange_.changed_.wait_for(lock, wait, [&] { return !queue.empty(); })) {
        return environment_error("receive from rank " + std::to_string(from) +
                                 ": no answer in time");
      }
      auto bytes = std::move(queue.front());
      queue.pop_front();
      return bytes;
    }

   private:
    Exchange& exchange_;
    int rank_;
  };

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<std::string>> queues_;
};

// Runs `main` as every rank; what each gives, by rank.
template <class F>
auto as_ranks(int size, F&& main) {
  Exchange exchange(size);
  std::vector<decltype(main(std::declval<Group&>()))> out(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Group group(std::make_unique<Exchange::Port>(exchange, rank));
      out[static_cast<size_t>(rank)] = main(group);
    });
  }
  for (auto& thread : threads) thread.join();
  return out;
}

TEST(Group, AloneEverythingIsFree) {
  Group group;
  EXPECT_EQ(group.size(), 1);
  EXPECT_TRUE(group.is_first());
  EXPECT_TRUE(group.barrier(0).ok());
  EXPECT_EQ(group.broadcast("x", 0).value(), "x");
  EXPECT_THAT(group.gather("x", 0).value(), ElementsAre("x"));
  EXPECT_EQ(group.all_max(7, 0).value(), 7);
  EXPECT_TRUE(group.agree({}, 0).ok());
  EXPECT_EQ(group.agree(failed("no"), 0).error().message, "no");
  EXPECT_EQ(group.measure_clocks(5, 0).value().at(0).offset_ns, 0);
}

TEST(Group, MessagesForEverySize) {
  for (int size = 1; size <= 5; ++size) {
    const auto texts = as_ranks(size, [](Group& group) {
      std::string text;
      const std::string big(100'000, static_cast<char>('a' + group.rank()));
      text += group.broadcast(group.is_first() ? "from 0" : "ignored", kEnough).value();
      const auto all = group.gather(big, kEnough).value();
      for (const auto& one : all) text += one.size() == big.size() ? one[0] : '!';
      text += std::to_string(group.all_max(10 - group.rank(), kEnough).value());
      text += group.barrier(kEnough).ok() ? "." : "!";
      return text;
    });
    EXPECT_EQ(texts[0],
              "from 0" + std::string("abcde").substr(0, static_cast<size_t>(size)) + "10.");
    for (int rank = 1; rank < size; ++rank)
      EXPECT_EQ(texts[static_cast<size_t>(rank)], "from 010.");
  }
}

TEST(Group, LongStreamsToTheFirst) {
  const auto sums = as_ranks(3, [](Group& group) {
    int64_t sum = 0;
    if (group.is_first()) {
      for (int rank = 1; rank < 3; ++rank) {
        for (;;) {
          const auto message = group.receive_from(rank, kEnough).value();
          if (message.empty()) break;
          sum += rank * static_cast<int64_t>(message.size());
        }
      }
    } else {
      for (int i = 1; i <= 100; ++i) {
        EXPECT_TRUE(group.send_to_first(std::string(static_cast<size_t>(i), 'x'), kEnough).ok());
      }
      EXPECT_TRUE(group.send_to_first("", kEnough).ok());
    }
    return sum;
  });
  EXPECT_EQ(sums[0], 5050 * 3);
}

TEST(Group, AgreesOnTheErrorOfTheLowestRank) {
  const auto said = as_ranks(4, [](Group& group) {
    const bool bad = group.rank() >= 2;
    const auto done =
        group.agree(bad ? Result<void>(invalid_argument("bad " + std::to_string(group.rank())))
                        : Result<void>(),
                    kEnough);
    EXPECT_EQ(group.is_speaker(), group.is_first());
    return done ? "ok" : std::to_string(static_cast<int>(done.error().code)) + done.error().message;
  });
  for (const auto& text : said) EXPECT_EQ(text, "0rank 2: bad 2");
}

// A rank that fails early says so in the agreement in which the others wait.
TEST(Group, FailMeetsTheOthersInTheirAgreement) {
  const auto said = as_ranks(3, [](Group& group) -> std::string {
    if (group.rank() == 1) {
      const auto error = environment_error("no endpoint");
      group.fail(error, kEnough);
      group.fail(error, kEnough);  // known already: nothing
      return error.message;
    }
    return group.agree({}, kEnough).error().message;
  });
  EXPECT_EQ(said[0], "rank 1: no endpoint");
  EXPECT_EQ(said[2], "rank 1: no endpoint");
}

TEST(Group, ARankThatNeverComesIsAnErrorInTime) {
  const auto begin = monotonic_ns();
  const auto said = as_ranks(3, [](Group& group) -> std::string {
    if (group.rank() == 2) return "gone";
    const auto done = group.barrier(50 * kNanosPerMilli);
    EXPECT_TRUE(group.is_speaker());  // nobody else can tell
    return done ? "ok" : done.error().message;
  });
  EXPECT_THAT(said[0], HasSubstr("rank 2: no answer in time"));
  EXPECT_THAT(said[1], HasSubstr("rank 0: no answer in time"));
  EXPECT_LT(monotonic_ns() - begin, 10 * kNanosPerSecond);
}

TEST(Group, ClocksOfOneHostAgree) {
  const auto offsets =
      as_ranks(3, [](Group& group) { return group.measure_clocks(64, kEnough).value(); });
  for (size_t rank = 1; rank < 3; ++rank) {
    const auto& seen = offsets[0][rank];
    // What is measured is 0 within the error that is claimed for it.
    EXPECT_LE(std::abs(seen.offset_ns), seen.error_ns);
    EXPECT_GT(seen.error_ns, 0);
    EXPECT_LT(seen.error_ns, 10 * kNanosPerMilli);
    // Each rank is told its own.
    EXPECT_EQ(offsets[rank][rank].offset_ns, seen.offset_ns);
  }
}

TEST(MpiLauncher, IsSeenByItsVariables) {
  std::map<std::string, std::string> variables;
  const auto variable = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_FALSE(mpi_launcher(variable).has_value());
  variables = {{"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(mpi_launcher(variable), "OMPI_COMM_WORLD_SIZE");
  variables = {{"OMPI_COMM_WORLD_SIZE", "1"}};
  EXPECT_FALSE(mpi_launcher(variable).has_value());
  variables = {{"PMI_SIZE", "2"}};
  EXPECT_EQ(mpi_launcher(variable), "PMI_SIZE");
  variables = {{"SLURM_NTASKS", "8"}};  // the shell of an allocation, not a step
  EXPECT_FALSE(mpi_launcher(variable).has_value());
  variables["PMIX_RANK"] = "3";
  EXPECT_EQ(mpi_launcher(variable), "SLURM_NTASKS");
}

TEST(OpenMpi, AMissingPluginIsOneLine) {
  ::setenv("PRONY_MPI_PLUGIN", "/no/such/libprony_mpi.so", 1);
  const auto opened = open_mpi("PMI_SIZE");
  ::unsetenv("PRONY_MPI_PLUGIN");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("PMI_SIZE is set, so an MPI launcher"));
  EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace prony::core
