// RowStore: the rows of a run as they end, in memory up to a budget and beyond it in a temporary
// file without a name, so that a run of any length needs the same memory while it is measured.
// The threads that measure encode each row (row_codec.hpp) into a block of their own and hand over
// full blocks without a lock, a system call or, but for the first ones, an allocation; a writer
// thread sorts a block's rows by index and keeps or writes it. Reading merges the blocks by index.
// A full disk loses nothing: blocks then stay in memory, and failed() says so at once.
// Thread safety: add_appender(), seal() and reading one thread; an Appender one thread, each its
// own; failed() any thread.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/record/row_source.hpp"

namespace prony::record {

class RowStore final : public RowSource {
 public:
  struct Options {
    /// Where the file may lie: the first folder that takes one. Made when memory is used up.
    std::vector<std::string> folders = {"/var/tmp", "/tmp"};
    int64_t memory_bytes = int64_t{32} << 20;  // of encoded rows
    int64_t block_bytes = int64_t{256} << 10;
    /// Of blocks read whole while their rows are due. Where more of them overlap (requests of an
    /// hour among many of a second), rows are read one by one.
    int64_t read_ahead_bytes = int64_t{32} << 20;
  };

  /// Where one thread leaves its rows. Lives as long as the store.
  class Appender {
   public:
    virtual ~Appender() = default;
    virtual void append(const RequestRow& row) = 0;
    /// Hands over what is there; after the last row of this thread.
    virtual void flush() = 0;
  };

  /// An empty store: sealed, without a writer.
  RowStore();
  explicit RowStore(const Options& options);
  RowStore(RowStore&&) noexcept;
  RowStore& operator=(RowStore&&) noexcept;
  ~RowStore() override;

  /// Before seal() (checked).
  Appender& add_appender();
  /// All appenders were flushed: ends the writer; the rows can be read from now on.
  void seal();

  /// The file could not be written: rows stay in memory from now on, so the run should end.
  bool failed() const;
  /// After seal(): what went wrong in writing or, so far, in reading.
  Result<void> status() const;

  // After seal() (checked):
  int64_t size() const override;
  /// A row that cannot be read back ends the walk; status() then says why.
  void for_each(const std::function<void(const RequestRow&)>& visit) const override;
  int64_t file_bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prony::record
