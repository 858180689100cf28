#include "prony/record/row_store.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "prony/core/check.hpp"
#include "prony/core/temporary_file.hpp"
#include "prony/record/row_codec.hpp"

namespace prony::record {
namespace {

/// How long a full block may lie before it is taken.
constexpr auto kWriterTick = std::chrono::milliseconds(50);

struct Place {  // of a row in its block
  int64_t index = 0;
  uint32_t offset = 0, size = 0;
};

struct Block {
  Block* next = nullptr;  // in a BlockList
  std::string bytes;
  std::vector<Place> places;
};

// Blocks handed from one thread to another: any pushes, one takes all. Taking everything at once
// leaves no way for a block to come back unseen between a read and an exchange.
class BlockList {
 public:
  ~BlockList() {
    for (Block* block = take(); block != nullptr;) {
      delete std::exchange(block, block->next);
    }
  }
  void push(Block* block) {
    block->next = head_.load(std::memory_order_relaxed);
    while (!head_.compare_exchange_weak(block->next, block, std::memory_order_release,
                                        std::memory_order_relaxed)) {
    }
  }
  /// The newest first.
  Block* take() { return head_.exchange(nullptr, std::memory_order_acquire); }

 private:
  std::atomic<Block*> head_{nullptr};
};

// What a thread has to hand over, and blocks that came back to it.
class BlockAppender final : public RowStore::Appender {
 public:
  explicit BlockAppender(size_t block_bytes) : block_bytes_(block_bytes) {}
  ~BlockAppender() override {
    delete current_;
    while (spare_ != nullptr) delete std::exchange(spare_, spare_->next);
  }

  void append(const RequestRow& row) override {
    if (current_ == nullptr) current_ = fresh();
    auto& bytes = current_->bytes;
    const size_t begin = bytes.size();
    encode_row(row, bytes);
    current_->places.push_back(
        {row.index, static_cast<uint32_t>(begin), static_cast<uint32_t>(bytes.size() - begin)});
    if (bytes.size() >= block_bytes_) flush();
  }
  void flush() override {
    if (current_ != nullptr) full.push(std::exchange(current_, nullptr));
  }

  BlockList full, empty;  // to the writer; back from it

 private:
  Block* fresh() {
    if (spare_ == nullptr) spare_ = empty.take();
    if (spare_ == nullptr) {
      auto* block = new Block;
      block->bytes.reserve(block_bytes_ + block_bytes_ / 8);
      block->places.reserve(block_bytes_ / 128);  // the smallest rows
      return block;
    }
    return std::exchange(spare_, spare_->next);
  }

  size_t block_bytes_;
  Block* current_ = nullptr;
  Block* spare_ = nullptr;
};

// A block that was handed over.
struct Stored {
  int64_t first_index = 0;
  size_t rows = 0, size = 0;    // size: of the encoded rows
  int64_t offset = -1;          // in the file: the rows, then their places; -1: in memory
  std::unique_ptr<Block> kept;  // in memory
};

}  // namespace

class RowStore::Impl {
 public:
  explicit Impl(const Options& options) : options_(options) {
    PRONY_CHECK(options.block_bytes > 0 && options.block_bytes <= (int64_t{1} << 30));
    writer_ = std::thread([this] { write_loop(); });
  }
  ~Impl() { seal(); }

  Appender& add_appender() {
    PRONY_CHECK(!sealed_, "a sealed store takes no rows");
    const std::lock_guard lock(mutex_);
    appenders_.push_back(
        std::make_unique<BlockAppender>(static_cast<size_t>(options_.block_bytes)));
    return *appenders_.back();
  }

  void seal() {
    if (sealed_) return;
    sealed_ = true;
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    ends_.notify_one();
    writer_.join();
    appenders_.clear();  // with the blocks that came back
    std::stable_sort(blocks_.begin(), blocks_.end(), [](const Stored& a, const Stored& b) {
      return a.first_index < b.first_index;
    });
  }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Result<void> status() const {
    PRONY_CHECK(sealed_);
    if (error_) return *error_;
    return {};
  }
  int64_t size() const {
    PRONY_CHECK(sealed_);
    return rows_;
  }
  int64_t file_bytes() const { return file_ ? file_->size() : 0; }
  void for_each(const std::function<void(const RequestRow&)>& visit) const;

 private:
  struct Cursor;
  void write_loop();
  void drain();
  void keep(std::unique_ptr<Block> block, BlockAppender& from);
  Result<int64_t> write(const Block& block);
  bool open(const Stored& stored, Cursor& cursor, int64_t& loaded) const;
  bool read(const Cursor& cursor, std::string& scratch, RequestRow& row) const;
  bool read_file(int64_t offset, char* out, size_t size) const;

  Options options_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ending_ = false;                                    // under mutex_
  std::vector<std::unique_ptr<BlockAppender>> appenders_;  // the list under mutex_
  std::thread writer_;
  bool sealed_ = false;
  std::atomic<bool> failed_{false};
  // The writer's, then the reader's:
  std::vector<Stored> blocks_;
  std::optional<core::TemporaryFile> file_;
  int64_t memory_bytes_ = 0, rows_ = 0;
  mutable std::optional<Error> error_;
};

void RowStore::Impl::write_loop() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    ends_.wait_for(lock, kWriterTick);
    lock.unlock();
    drain();
    lock.lock();
  }
  lock.unlock();
  drain();
}

void RowStore::Impl::drain() {
  for (size_t i = 0;; ++i) {
    BlockAppender* appender = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (i == appenders_.size()) return;
      appender = appenders_[i].get();  // stays until seal() has joined this thread
    }
    for (Block* block = appender->full.take(); block != nullptr;) {
      Block* next = block->next;
      keep(std::unique_ptr<Block>(block), *appender);
      block = next;
    }
  }
}

void RowStore::Impl::keep(std::unique_ptr<Block> block, BlockAppender& from) {
  auto& places = block->places;
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.index < b.index; });
  Stored stored;
  stored.first_index = places.front().index;
  stored.rows = places.size();
  stored.size = block->bytes.size();
  rows_ += static_cast<int64_t>(stored.rows);
  const auto size = static_cast<int64_t>(stored.size + stored.rows * sizeof(Place));
  const bool fits = memory_bytes_ + size <= options_.memory_bytes;
  if (!fits && !error_) {
    const auto offset = write(*block);
    if (offset) {
      stored.offset = *offset;
    } else {
      error_ = offset.error();
      failed_.store(true, std::memory_order_release);
    }
  }
  if (stored.offset >= 0) {
    block->bytes.clear();
    places.clear();
    from.empty.push(block.release());
  } else {
    memory_bytes_ += size;
    block->bytes.shrink_to_fit();
    places.shrink_to_fit();
    stored.kept = std::move(block);
  }
  blocks_.push_back(std::move(stored));
}

Result<int64_t> RowStore::Impl::write(const Block& block) {
  if (!file_) {
    Error error = environment_error("no folder for the rows of a long run");
    for (const auto& folder : options_.folders) {
      auto file = core::TemporaryFile::create(folder);
      if (file) {
        file_ = std::move(*file);
        break;
      }
      error = file.error();
    }
    if (!file_) return error;
  }
  const auto offset = file_->append(block.bytes);
  if (!offset) return offset;
  const std::string_view places(reinterpret_cast<const char*>(block.places.data()),
                                block.places.size() * sizeof(Place));
  if (const auto done = file_->append(places); !done) return done;
  return offset;
}

// An open block: the place of its next row, and as much of it as was read.
struct RowStore::Impl::Cursor {
  const Stored* stored = nullptr;
  std::vector<Place> read_places;
  std::string read_bytes;  // all rows, or none
  const Place* next = nullptr;
  const Place* end = nullptr;
  int64_t order = 0;  // of opening: equal indices come in it
};

bool RowStore::Impl::read_file(int64_t offset, char* out, size_t size) const {
  auto done = file_->read_at(offset, out, size);
  if (!done && !error_) error_ = done.error();
  return done.ok();
}

bool RowStore::Impl::open(const Stored& stored, Cursor& cursor, int64_t& loaded) const {
  cursor.stored = &stored;
  if (stored.kept) {
    cursor.next = stored.kept->places.data();
  } else {
    cursor.read_places.resize(stored.rows);
    if (!read_file(stored.offset + static_cast<int64_t>(stored.size),
                   reinterpret_cast<char*>(cursor.read_places.data()),
                   stored.rows * sizeof(Place))) {
      return false;
    }
    cursor.next = cursor.read_places.data();
    if (loaded + static_cast<int64_t>(stored.size) <= options_.read_ahead_bytes) {
      loaded += static_cast<int64_t>(stored.size);
      cursor.read_bytes.resize(stored.size);
      if (!read_file(stored.offset, cursor.read_bytes.data(), stored.size)) return false;
    }
  }
  cursor.end = cursor.next + stored.rows;
  return true;
}

bool RowStore::Impl::read(const Cursor& cursor, std::string& scratch, RequestRow& row) const {
  const Place& place = *cursor.next;
  std::string_view bytes;
  if (cursor.stored->kept) {
    bytes = std::string_view(cursor.stored->kept->bytes).substr(place.offset, place.size);
  } else if (!cursor.read_bytes.empty()) {
    bytes = std::string_view(cursor.read_bytes).substr(place.offset, place.size);
  } else {
    scratch.resize(place.size);
    if (!read_file(cursor.stored->offset + place.offset, scratch.data(), place.size)) return false;
    bytes = scratch;
  }
  if (decode_row(bytes, row)) return true;
  if (!error_) error_ = environment_error("the temporary file of the rows was damaged");
  return false;
}

void RowStore::Impl::for_each(const std::function<void(const RequestRow&)>& visit) const {
  PRONY_CHECK(sealed_, "rows are read after seal()");
  const auto later = [](const std::unique_ptr<Cursor>& a, const std::unique_ptr<Cursor>& b) {
    return std::pair(a->next->index, a->order) > std::pair(b->next->index, b->order);
  };
  std::vector<std::unique_ptr<Cursor>> open_blocks;  // a heap, the next row on top
  size_t next_block = 0;
  int64_t loaded = 0;
  RequestRow row;
  std::string scratch;
  while (true) {
    // Every block that may hold the next row.
    while (next_block < blocks_.size() &&
           (open_blocks.empty() ||
            blocks_[next_block].first_index <= open_blocks.front()->next->index)) {
      auto cursor = std::make_unique<Cursor>();
      cursor->order = static_cast<int64_t>(next_block);
      if (!open(blocks_[next_block++], *cursor, loaded)) return;
      open_blocks.push_back(std::move(cursor));
      std::push_heap(open_blocks.begin(), open_blocks.end(), later);
    }
    if (open_blocks.empty()) return;
    std::pop_heap(open_blocks.begin(), open_blocks.end(), later);
    auto& cursor = *open_blocks.back();
    if (!read(cursor, scratch, row)) return;
    visit(row);
    if (++cursor.next == cursor.end) {
      loaded -= static_cast<int64_t>(cursor.read_bytes.size());
      open_blocks.pop_back();
    } else {
      std::push_heap(open_blocks.begin(), open_blocks.end(), later);
    }
  }
}

RowStore::RowStore() = default;
RowStore::RowStore(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
RowStore::RowStore(RowStore&&) noexcept = default;
RowStore& RowStore::operator=(RowStore&&) noexcept = default;
RowStore::~RowStore() = default;

RowStore::Appender& RowStore::add_appender() {
  PRONY_CHECK(impl_ != nullptr, "a sealed store takes no rows");
  return impl_->add_appender();
}
void RowStore::seal() {
  if (impl_) impl_->seal();
}
bool RowStore::failed() const {
  return impl_ && impl_->failed();
}
Result<void> RowStore::status() const {
  return impl_ ? impl_->status() : Result<void>();
}
int64_t RowStore::size() const {
  return impl_ ? impl_->size() : 0;
}
int64_t RowStore::file_bytes() const {
  return impl_ ? impl_->file_bytes() : 0;
}
void RowStore::for_each(const std::function<void(const RequestRow&)>& visit) const {
  if (impl_) impl_->for_each(visit);
}

}  // namespace prony::record
