// The Record of a measured run, put together from what the run knew and what came back.
// Thread safety: pure function.
#pragma once
#include "prony/load/bench_options.hpp"
#include "prony/load/driver.hpp"
#include "prony/load/endpoint.hpp"
#include "prony/record/record.hpp"
#include "prony/record/summary.hpp"

namespace prony::load {

struct RunFacts {
  const BenchOptions& options;
  const LoadShape& shape;
  const workload::Schedule& schedule;
  const BodyOptions& body;
  const Endpoint& endpoint;
  const workload::PromptBuilder& prompts;
  record::Environment environment = {};
  core::Nanos started_realtime_ns = 0;
};

record::Record make_record(const RunFacts& facts, const LoadResult& load,
                           const record::SummaryOptions& summary);

}  // namespace prony::load
