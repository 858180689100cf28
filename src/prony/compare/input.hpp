// What `prony compare` is given: paths to sides, each a run (a folder, its record.json, or its
// requests.jsonl alone) or a folder of run folders, which are repeats of one another.
// Thread safety: pure functions.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/record/record.hpp"
#include "prony/record/request_row.hpp"
#include "prony/record/summary.hpp"

namespace prony::compare {

struct RunInput {
  std::string path;                      // as given
  std::optional<record::Record> record;  // nullopt: rows alone
  std::vector<record::RequestRow> rows;  // by index; empty: none
  std::optional<record::Window> window;  // of `rows`; nullopt: without rows
  record::Metrics metrics;               // of the record, else computed of the rows
  std::string rows_note;                 // why rows that lie there are not used
};
struct SideInput {
  std::string name;
  std::vector<RunInput> runs;  // one or more
};

/// Error: a path that is none of these, a record or a row that is broken.
Result<RunInput> load_run(const std::string& path);
/// One side from one or several paths; its name is the label of its runs, else the last part of the
/// first path.
Result<SideInput> load_side(const std::vector<std::string>& paths);
/// Names of the sides made different from each other: by their paths, then by numbers.
void distinguish(std::vector<SideInput>& sides);

/// A record and perhaps rows, already read: what load_run() makes of the files.
RunInput make_run(std::string path, std::optional<record::Record> record,
                  std::vector<record::RequestRow> rows);

}  // namespace prony::compare
