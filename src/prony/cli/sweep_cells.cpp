// What a cell leaves behind: its part of the document, its files, and their use by --resume.
#include <fmt/format.h>

#include "prony/cli/bench_output.hpp"
#include "prony/cli/sweep_runner.hpp"
#include "prony/core/file.hpp"
#include "prony/record/record.hpp"

namespace prony::cli {
namespace {

void fill_cell(record::SweepCell& cell, const record::Record& record) {
  const bool some = record.metrics.completed.value_or(0) > 0;
  cell.status = record.run.interrupted ? record::CellStatus::kInterrupted
                : some                 ? record::CellStatus::kDone
                                       : record::CellStatus::kFailed;
  cell.metrics = record.metrics;
  cell.validity = record.validity;
  cell.system_kind = record::system_kind_name(record.system.kind);
  cell.record_path = "cells/" + cell.slug + "/record.json";
  if (record.slo.is_object() && record.slo.at("met").is_boolean()) {
    cell.slo_met = record.slo.at("met").get<bool>();
  }
}

}  // namespace

bool server_is_gone(const record::Metrics& metrics) {
  int64_t lost = 0;
  for (const char* status : {"connect", "timeout_connect"}) {
    if (const auto at = metrics.errors.find(status); at != metrics.errors.end()) lost += at->second;
  }
  return metrics.completed.value_or(0) == 0 && lost > 0 && lost == metrics.failed.value_or(0);
}

void SweepRunner::resume() {
  for (auto& cell : sweep_.cells) {
    const auto path = fmt::format("{}/cells/{}/record.json", *flags_.out, cell.slug);
    const auto record = record::read_record(path);
    if (!record) continue;  // not there, or half of something else
    const auto& metadata = record.value().run.metadata;
    const bool same =
        metadata.contains(kSweepHashKey) && metadata.at(kSweepHashKey) == cell.options_hash;
    if (!same || record.value().run.interrupted) continue;
    if (record.value().metrics.completed.value_or(0) == 0) continue;
    fill_cell(cell, record.value());
    cell.resumed = true;
    if (sweep_.model.empty()) sweep_.model = record.value().system.model;
    if (sweep_.environment.commit.empty()) sweep_.environment = record.value().environment;
  }
}

Result<void> SweepRunner::keep(size_t index, load::BenchRun& run) {
  auto& cell = sweep_.cells[index];
  cell.error.clear();
  fill_cell(cell, run.record);
  broke_a_rule_ = broke_a_rule_ || !run.broken_rules.empty();
  for (const auto& rule : run.broken_rules) note_("failed " + rule);
  if (sweep_.model.empty()) sweep_.model = run.record.system.model;
  if (sweep_.environment.commit.empty()) sweep_.environment = run.record.environment;
  if (server_is_gone(run.record.metrics)) {
    cell.status = record::CellStatus::kUnreachable;
    cell.error = "no connection to the server";
    target_gone_ = true;
    server_error_ = environment_error(cell.error);
  }
  if (!flags_.out) {
    cell.record_path.clear();
    return {};
  }
  return write_run_files(flags_, fmt::format("{}/cells/{}", *flags_.out, cell.slug), run);
}

Result<void> SweepRunner::save() const {
  if (!flags_.out) return {};
  const auto text = record::sweep_text(sweep_);
  if (!text) return text.error();
  return core::write_file_atomic(*flags_.out + "/sweep.json", text.value());
}

}  // namespace prony::cli
