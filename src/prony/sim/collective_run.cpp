#include "prony/sim/collective_run.hpp"

#include "prony/core/check.hpp"

namespace prony::sim {
namespace {

class TimeOfOne : public CollectiveSink {
 public:
  void on_collective_done(uint64_t, int64_t now_ns) override { done_ns = now_ns; }
  void on_collective_failed(uint64_t, int64_t) override {}
  int64_t done_ns = -1;
};

}  // namespace

void CollectiveRunner::start(const CollectivePlan& plan, std::span<const int32_t> devices,
                             uint32_t weight, uint64_t tag, CollectiveSink* sink) {
  PRONY_CHECK(static_cast<int32_t>(devices.size()) == plan.ranks && sink);
  if (plan.steps.empty()) {
    sink->on_collective_done(tag, network_.now_ns());
    return;
  }
  size_t at = 0;
  while (at < runs_.size() && runs_[at].active) ++at;
  if (at == runs_.size()) runs_.emplace_back();
  Run& run = runs_[at];
  run.plan = &plan;
  run.sink = sink;
  run.devices.assign(devices.begin(), devices.end());
  run.waits.resize(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) run.waits[i] = plan.steps[i].waits;
  run.sent.assign(plan.steps.size(), TransferId{});
  run.tag = tag;
  run.weight = weight;
  run.left = plan.steps.size();
  run.active = true;
  ++running_;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (run.waits[i] == 0) send(at, static_cast<int32_t>(i));
  }
}

void CollectiveRunner::send(size_t at, int32_t step) {
  Run& run = runs_[at];
  const CollectivePlan::Step& s = run.plan->steps[static_cast<size_t>(step)];
  const int32_t from = run.devices[static_cast<size_t>(s.from)];
  const int32_t to = run.devices[static_cast<size_t>(s.to)];
  // One pair keeps one route for the whole collective, as connections do.
  const uint64_t salt = (static_cast<uint64_t>(from) << 32) ^ static_cast<uint64_t>(to);
  run.sent[static_cast<size_t>(step)] =
      network_.send({.from = from,
                     .to = to,
                     .bytes = s.bytes,
                     .weight = run.weight,
                     .salt = salt,
                     .tag = (static_cast<uint64_t>(at) << 32) | static_cast<uint32_t>(step),
                     .sink = this});
}

void CollectiveRunner::on_delivered(uint64_t tag, int64_t now_ns) {
  const auto at = static_cast<size_t>(tag >> 32);
  const auto step = static_cast<int32_t>(tag & 0xFFFFFFFF);
  const CollectivePlan& plan = *runs_[at].plan;
  for (const int32_t next : plan.waiting_for(step)) {
    if (--runs_[at].waits[static_cast<size_t>(next)] == 0) send(at, next);
  }
  Run& run = runs_[at];
  if (--run.left > 0) return;
  run.active = false;
  --running_;
  // The sink may start the next collective, which may take this place.
  CollectiveSink* sink = run.sink;
  sink->on_collective_done(run.tag, now_ns);
}

void CollectiveRunner::on_lost(uint64_t tag, int64_t now_ns) {
  const auto at = static_cast<size_t>(tag >> 32);
  Run& run = runs_[at];
  for (const TransferId id : run.sent) {
    if (network_.pending(id)) network_.cancel(id);
  }
  run.active = false;
  --running_;
  CollectiveSink* sink = run.sink;
  sink->on_collective_failed(run.tag, now_ns);
}

int64_t collective_time_ns(Topology& topology, const CollectivePlan& plan,
                           std::span<const int32_t> devices) {
  Network network(topology);
  CollectiveRunner runner(network);
  TimeOfOne time;
  runner.start(plan, devices, 1, 0, &time);
  network.run_until();
  return time.done_ns;
}

}  // namespace prony::sim
