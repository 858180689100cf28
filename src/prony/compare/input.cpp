#include "prony/compare/input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "prony/record/inferred_window.hpp"
#include "prony/record/rows_file.hpp"

namespace prony::compare {
namespace {

namespace fs = std::filesystem;
using record::RequestRow;

constexpr const char* kRecord = "record.json";
constexpr const char* kRows = "requests.jsonl";

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}
bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}
bool is_run(const fs::path& folder) {
  return is_file(folder / kRecord) || is_file(folder / kRows);
}

std::string last_part(const std::string& path) {
  auto clean = fs::path(path).lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  const auto name = clean.filename().string();
  if (name == kRecord || name == kRows) return last_part(clean.parent_path().string());
  return name.empty() || name == "." || name == ".." ? path : name;
}

// Folders of runs below `folder`, by name.
std::vector<std::string> runs_below(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_folder(entry.path()) && is_run(entry.path())) out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::vector<RequestRow>> load_rows(const fs::path& path) {
  auto rows = record::read_rows(path.string());
  if (!rows) return rows.error();
  std::sort(rows->begin(), rows->end(),
            [](const RequestRow& a, const RequestRow& b) { return a.index < b.index; });
  for (size_t i = 0; i < rows->size(); ++i) {
    const auto& row = (*rows)[i];
    if (auto checked = record::check_row(row, path.string()); !checked) return checked.error();
    if (i > 0 && row.index == (*rows)[i - 1].index) {
      return invalid_argument(
          fmt::format("{}: found two rows of index {}, expected one", path.string(), row.index));
    }
  }
  return rows;
}

}  // namespace

RunInput make_run(std::string path, std::optional<record::Record> record,
                  std::vector<RequestRow> rows) {
  RunInput run;
  run.path = std::move(path);
  run.record = std::move(record);
  const record::RowSpan span(rows);
  if (!run.record) {
    // What the run was is not known: the window is that of an open loop, whose rows end with the
    // last arrival.
    run.metrics = record::summarize(span, {});
    run.window = record::inferred_window(span, run.metrics);
    run.rows = std::move(rows);
    return run;
  }
  run.metrics = run.record->metrics;
  if (rows.empty()) return run;
  run.window = record::inferred_window(span, run.metrics);
  const auto inside = std::ranges::count_if(rows, [&](const RequestRow& row) {
    return run.window && run.window->holds(row.t_intended_ns);
  });
  if (!run.window) {
    run.rows_note = "requests.jsonl does not give the window of record.json";
  } else if (run.metrics.attempted && *run.metrics.attempted != inside) {
    run.rows_note = fmt::format("requests.jsonl has {} requests in the window, record.json {}",
                                inside, *run.metrics.attempted);
    run.window.reset();
  } else {
    run.rows = std::move(rows);
  }
  return run;
}

Result<RunInput> load_run(const std::string& path) {
  fs::path record_path, rows_path;
  if (is_folder(path)) {
    record_path = fs::path(path) / kRecord;
    rows_path = fs::path(path) / kRows;
  } else if (!is_file(path)) {
    return invalid_argument(fmt::format("{}: found no such file or folder, expected a run", path));
  } else if (path.ends_with(".jsonl")) {
    rows_path = path;
  } else {
    record_path = path;
    if (record_path.filename() == kRecord) rows_path = record_path.parent_path() / kRows;
  }
  std::optional<record::Record> record;
  if (!record_path.empty() && is_file(record_path)) {
    auto read = record::read_record(record_path.string());
    if (!read) return read.error();
    record = std::move(*read);
  }
  std::vector<RequestRow> rows;
  if (!rows_path.empty() && is_file(rows_path)) {
    auto read = load_rows(rows_path);
    if (!read) return read.error();
    rows = std::move(*read);
  }
  if (!record && rows.empty()) {
    return invalid_argument(
        fmt::format("{}: found neither {} nor rows in {}, expected a run", path, kRecord, kRows));
  }
  return make_run(path, std::move(record), std::move(rows));
}

Result<SideInput> load_side(const std::vector<std::string>& paths) {
  SideInput side;
  for (const auto& path : paths) {
    std::vector<std::string> runs = {path};
    if (is_folder(path) && !is_run(path)) {
      runs = runs_below(path);
      if (runs.empty()) {
        return invalid_argument(fmt::format(
            "{}: found no {} in it or in a folder below, expected a run or a folder of runs{}",
            path, kRecord,
            is_file(fs::path(path) / "sweep.json") ? " (a sweep's are in cells)" : ""));
      }
    }
    for (const auto& one : runs) {
      auto run = load_run(one);
      if (!run) return run.error();
      side.runs.push_back(std::move(*run));
    }
  }
  const auto& first = side.runs.front().record;
  side.name = first && !first->run.label.empty() ? first->run.label : last_part(paths.front());
  return side;
}

void distinguish(std::vector<SideInput>& sides) {
  const auto differ = [&] {
    std::set<std::string> names;
    for (const auto& side : sides) names.insert(side.name);
    return names.size() == sides.size();
  };
  if (differ()) return;
  for (auto& side : sides) side.name = side.runs.front().path;
  if (differ()) return;
  for (size_t i = 0; i < sides.size(); ++i) sides[i].name += fmt::format(" ({})", i + 1);
}

}  // namespace prony::compare
