// Network: messages between the devices of a topology on virtual time. A message takes a route,
// shares its links with all others (FlowNetwork), and is delivered when its last byte has crossed
// the latencies of the route. Links that fail send their messages another way.
// Event driven: the owner asks next_event_ns(), and calls advance_to() when its own clock is there;
// sinks are called from within, in order of time and then of sending, and may send and cancel.
// Deterministic; memory grows only where a count exceeds all before it, and where Routes fills a
// table on first use. Thread safety: none.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/sim/flow_network.hpp"
#include "prony/sim/topology.hpp"
#include "prony/sim/topology_routes.hpp"

namespace prony::sim {

/// What receives the fate of a message.
class TransferSink {
 public:
  virtual ~TransferSink() = default;
  virtual void on_delivered(uint64_t tag, int64_t now_ns) = 0;
  /// The links that are up do not join the two devices any more; what it moved is lost.
  virtual void on_lost(uint64_t tag, int64_t now_ns) = 0;
};

struct Transfer {
  int32_t from = 0, to = 0;  // devices; equal: delivered at once
  int64_t bytes = 0;
  uint32_t weight = 1;  // of its tenant on every link
  uint64_t salt = 0;    // chooses among routes of equal cost
  uint64_t tag = 0;
  TransferSink* sink = nullptr;  // must outlive the message
};

struct TransferId {
  uint32_t slot = ~0U, generation = 0;
  bool operator==(const TransferId&) const = default;
};

/// Told which device sent how much and when, one stretch of equal rate at a time.
class TrafficObserver {
 public:
  virtual ~TrafficObserver() = default;
  virtual void on_traffic(int32_t from, int32_t to, int64_t from_ns, int64_t to_ns,
                          int64_t bytes_per_s, NanoBytes moved) = 0;
};

class Network : private FlowObserver {
 public:
  /// `topology` must outlive this and change through it alone.
  explicit Network(Topology& topology);

  const Topology& topology() const { return topology_; }
  Routes& routes() { return routes_; }
  FlowNetwork& flows() { return flows_; }
  int64_t now_ns() const { return flows_.now_ns(); }

  /// A message from now on. Without a route the sink is told so at the next advance_to().
  /// Requires a sink and devices that exist (checked).
  TransferId send(const Transfer& transfer);
  bool pending(TransferId id) const;
  /// No sink is told. Requires pending(id) (checked).
  void cancel(TransferId id);

  /// When a byte stream ends or a message arrives next; kNeverNs if nothing is under way.
  int64_t next_event_ns();
  /// Handles all events up to and at `ns`. Requires ns >= now_ns() (checked).
  void advance_to(int64_t ns);
  /// Until nothing is under way or `ns`; returns now_ns(). Halted messages stay.
  int64_t run_until(int64_t ns = kNeverNs);

  /// Takes both directions of a link (all links of a vertex) down or up. Messages on it go another
  /// way with what is left of them, or are lost. A link that comes back serves new messages.
  void set_link_up(int32_t link, bool up);
  void set_vertex_up(int32_t vertex, bool up);
  void set_bandwidth(int32_t link, int64_t bytes_per_s);

  /// `observer` outlives this or is replaced; nullptr for none.
  void set_observer(TrafficObserver* observer);
  void flush_observer() { flows_.flush_observer(); }

  int64_t bytes_sent() const { return bytes_sent_; }            // of all messages
  int64_t bytes_delivered() const { return bytes_delivered_; }  // of those that arrived
  int64_t in_flight() const { return in_flight_; }              // messages

 private:
  struct Message {
    Transfer transfer;
    FlowId flow;
    int64_t latency_ns = 0;
    uint32_t generation = 0;
    bool used = false, flowing = false, lost = false;
  };
  struct Arrival {
    int64_t at_ns;
    uint64_t sequence;
    uint32_t slot, generation;
    bool operator>(const Arrival& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : sequence > other.sequence;
    }
  };
  void on_stretch(uint64_t tag, int64_t from_ns, int64_t to_ns, int64_t bytes_per_s,
                  NanoBytes moved) override;
  int64_t latency_of(const std::vector<int32_t>& path) const;
  void arrive_at(int64_t ns, uint32_t slot);
  void release(uint32_t slot);
  void apply(int32_t link);

  Topology& topology_;
  Routes routes_;
  FlowNetwork flows_;
  TrafficObserver* observer_ = nullptr;
  std::vector<Message> messages_;
  std::vector<uint32_t> free_;
  std::vector<Arrival> arrivals_;  // heap, soonest first; stale ones are skipped by generation
  uint64_t sequence_ = 0;
  int64_t bytes_sent_ = 0, bytes_delivered_ = 0, in_flight_ = 0;
  std::vector<int32_t> path_;
  std::vector<FlowId> moved_;
  std::vector<FlowEnd> ended_;
};

}  // namespace prony::sim
