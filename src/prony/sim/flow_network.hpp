// FlowNetwork: bytes on links as fluids. Every flow has a path of links and a weight, and the links
// are shared max-min fairly at every instant: no flow can have more without a flow of no higher
// rate per weight having less. Source: Bertsekas & Gallager, "Data Networks", 2nd ed. 1992, 6.5.2
// (progressive filling, here with weights).
// Exact: rates are whole bytes/s, rounded down (so a link is never over its capacity and loses less
// than 1 byte/s a flow), bytes are counted in bytes/s x ns = 1e-9 byte with 128 bits. What a link
// carried is to the unit the sum of what its flows moved; a flow ends in the first whole
// nanosecond in which its last byte has gone.
// Incremental: an event solves the flows whose rate it can change, found by growing that set until
// every flow outside has still a saturated link on which nobody has more; the result is the
// allocation a solution from nothing gives, within a few bytes/s.
// Deterministic: a function of the calls. Memory grows only where a count (flows, flows on one
// link, links of a path) exceeds all before it. Thread safety: none.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace prony::sim {

/// 1e-9 byte: bytes/s x ns.
__extension__ using NanoBytes = __int128;
inline constexpr int64_t kNanoBytesPerByte = 1'000'000'000;
inline constexpr int64_t kNeverNs = std::numeric_limits<int64_t>::max();

/// Names a flow for its life; a stale id is never taken for a later flow.
struct FlowId {
  uint32_t slot = ~0U;
  uint32_t generation = 0;
  bool operator==(const FlowId&) const = default;
};

struct FlowStart {
  int64_t bytes = 0;    // >= 0
  uint32_t weight = 1;  // 1 .. kFlowWeightMax; twice the weight is twice the rate where both wait
  uint64_t tag = 0;     // the caller's
};
inline constexpr uint32_t kFlowWeightMax = 65'536;

struct FlowEnd {
  FlowId id;
  uint64_t tag = 0;
  int64_t at_ns = 0;
};

/// Told of every stretch of time in which a flow had one rate, when the stretch is over.
class FlowObserver {
 public:
  virtual ~FlowObserver() = default;
  /// `moved` is rate x (to - from), less in the last nanosecond of a flow. Calls come with
  /// from_ns < to_ns, for one flow in order of time.
  virtual void on_stretch(uint64_t tag, int64_t from_ns, int64_t to_ns, int64_t bytes_per_s,
                          NanoBytes moved) = 0;
};

class FlowNetwork {
 public:
  /// Link i has capacity capacities[i] [bytes/s], 0 for one that is down.
  explicit FlowNetwork(std::span<const int64_t> capacities);

  /// Requires bytes >= 0, a weight in range, links that exist and no link twice (checked). A flow
  /// of no bytes or no links ends now.
  FlowId start(const FlowStart& flow, std::span<const int32_t> path);
  /// Ends a flow early. Returns what it moved. Requires alive(id) (checked).
  NanoBytes cancel(FlowId id);
  /// The rest of the flow takes another path. Requires alive(id) (checked).
  void reroute(FlowId id, std::span<const int32_t> path);
  void set_weight(FlowId id, uint32_t weight);
  void set_capacity(int32_t link, int64_t bytes_per_s);

  int64_t now_ns() const { return now_ns_; }
  /// When the next flow ends if nothing else happens, kNeverNs if none will.
  int64_t next_end_ns();
  /// Moves the clock and appends the flows that ended, in order of their start. Requires
  /// now_ns() <= ns <= next_end_ns() (checked).
  void advance_to(int64_t ns, std::vector<FlowEnd>& ended);

  bool alive(FlowId id) const;
  int64_t rate_bytes_per_s(FlowId id);
  NanoBytes remaining(FlowId id) const;
  uint64_t tag(FlowId id) const;
  std::span<const int32_t> path(FlowId id) const;
  int32_t active_count() const { return active_; }
  int32_t link_count() const { return static_cast<int32_t>(links_.size()); }
  int64_t capacity(int32_t link) const { return links_[static_cast<size_t>(link)].capacity; }
  /// Flows that cross a link, appended in no particular but reproducible order.
  void flows_on(int32_t link, std::vector<FlowId>& out) const;
  /// All that the link carried until now.
  NanoBytes carried(int32_t link) const;
  /// Sum of the rates on a link.
  int64_t load_bytes_per_s(int32_t link);

  /// `observer` outlives this or is replaced; nullptr for none.
  void set_observer(FlowObserver* observer) { observer_ = observer; }
  /// Ends the current stretch of every flow, so that the observer has all until now.
  void flush_observer();

  /// Work done so far: solutions, and flows in them (what "incremental" saved shows here).
  struct Effort {
    uint64_t events = 0, solutions = 0, flows_solved = 0;
  };
  const Effort& effort() const { return effort_; }

 private:
  struct Flow {
    uint64_t tag = 0, sequence = 0;
    NanoBytes remaining = 0;
    int64_t updated_ns = 0;  // when `remaining` was right
    int64_t end_ns = kNeverNs;
    int64_t rate = 0, next_rate = 0;
    double level = 0, next_level = 0;  // rate per weight at its bottleneck
    int32_t bottleneck = -1, next_bottleneck = -1;
    int64_t bytes = 0;
    uint32_t weight = 1, generation = 0;
    int32_t heap_at = -1;
    int32_t links = 0;
    bool alive = false, dirty = false, in_region = false, frozen = false;
  };
  struct LinkFlow {
    uint32_t slot;
    int32_t step;  // its place in the flow's path
  };
  struct LinkState {
    int64_t capacity = 0;
    int64_t load = 0;  // sum of rates
    int64_t updated_ns = 0;
    NanoBytes carried = 0;
    std::vector<LinkFlow> flows;
    int32_t held = 0;  // flows whose bottleneck this is
    double level = 0;  // their rate per weight
    // While a region is solved.
    int64_t rest = 0, weights = 0;         // capacity and weights of its flows not yet frozen
    int64_t fixed = 0, region_weight = 0;  // load of the flows outside; weights of those inside
    int32_t region_flows = 0, fixed_held = 0, next_held = 0;
    double next_level = 0, level_max = 0;
    bool touched = false;
  };
  struct Share {  // rest / weights, exact
    int64_t rest, weights;
    int32_t link;
  };

  Flow& flow_of(FlowId id);
  const Flow& flow_of(FlowId id) const;
  std::span<int32_t> links_of(uint32_t slot);
  void attach(uint32_t slot, std::span<const int32_t> path);
  void detach(uint32_t slot, NanoBytes overshoot);
  void release(uint32_t slot);
  void mark_dirty(uint32_t slot);
  void settle(Flow& flow);
  void settle(LinkState& link);
  void schedule(uint32_t slot);

  void solve();
  void touch(int32_t link);
  void add_to_region(uint32_t slot);
  bool grow_region();
  void fill_region();
  void freeze_at(int32_t link);
  void commit();

  bool before(uint32_t a, uint32_t b) const;
  void heap_push(uint32_t slot);
  void heap_remove(uint32_t slot);
  void heap_up(size_t at);
  void heap_down(size_t at);

  int64_t now_ns_ = 0;
  uint64_t sequence_ = 0;
  int32_t active_ = 0;
  FlowObserver* observer_ = nullptr;
  std::vector<Flow> flows_;
  std::vector<uint32_t> free_;
  size_t stride_ = 8;                // room for a path
  std::vector<int32_t> path_links_;  // [slot, stride]
  std::vector<int32_t> path_at_;     // [slot, stride], place in the link's list of flows
  std::vector<LinkState> links_;
  std::vector<uint32_t> heap_;  // slots by (end, sequence)
  std::vector<uint32_t> dirty_flows_;
  std::vector<int32_t> touched_;  // links of the region, or changed
  std::vector<uint32_t> region_;
  std::vector<Share> shares_;
  Effort effort_;
};

}  // namespace prony::sim
