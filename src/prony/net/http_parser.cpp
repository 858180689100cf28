#include "prony/net/http_parser.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <optional>
#include <utility>

#include "prony/net/http_format.hpp"

namespace prony::net {
namespace {

namespace http = boost::beast::http;
using ErrorCode = boost::beast::error_code;
using Slice = boost::beast::string_view;

// The longest head of a response, and of one chunk header or trailer, that is believed.
constexpr size_t kResponseHeadLimit = 64 << 10;
constexpr std::string_view kStatusLine = "HTTP/1.";
// A declared length reserves memory at once only up to this: the client may never send it.
constexpr size_t kBodyReserveLimit = 1 << 20;

std::string_view view(Slice slice) {
  return {slice.data(), slice.size()};
}

void assign(std::string& to, Slice from) {
  to.assign(from.data(), from.size());
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// "Text/Event-Stream; charset=utf-8" -> "text/event-stream"
void assign_media_type(std::string& to, std::string_view value) {
  value = value.substr(0, value.find(';'));
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  to.resize(value.size());
  std::transform(value.begin(), value.end(), to.begin(), lower);
}

std::string error_text(const ErrorCode& error) {
  std::string text = error.message();
  if (!text.empty()) text[0] = lower(text[0]);
  return text;
}

// Beast would take the length of such a body from elsewhere, or take it to be empty.
void refuse_unknown_transfer(http::field field, Slice value, ErrorCode& error) {
  if (field == http::field::transfer_encoding && !equal_ignoring_case(view(value), "chunked")) {
    error = http::error::bad_transfer_encoding;
  }
}

// Beast's own limit is for one line: fields that trickle in would add up without end.
void count_header(size_t& total, Slice name, Slice value, size_t limit, ErrorCode& error) {
  total += name.size() + value.size() + 4;
  if (total > limit) error = http::error::header_limit;
}

// Beast asserts that a last chunk it has seen the start of ("0 CR LF") has five bytes when it is
// shown it again. A peer that sends the next byte alone would abort us. Four bytes that begin a
// chunk with '0' hold no data yet, so waiting for the fifth delays nothing.
constexpr size_t kLastChunkBytes = 5;
template <class Parser>
bool is_short_last_chunk(const Parser& parser, std::string_view again) {
  return again.size() < kLastChunkBytes && again.starts_with('0') && parser.is_header_done() &&
         parser.chunked();
}

}  // namespace

// ---- responses

struct ResponseParser::Impl {
  class Parser final : public http::basic_parser<false> {
   public:
    explicit Parser(Impl& owner) : owner_(owner) {
      header_limit(kResponseHeadLimit);
      body_limit(boost::none);
      eager(true);
    }

   private:
    void on_request_impl(http::verb, Slice, Slice, int, ErrorCode&) override {}
    void on_response_impl(int code, Slice, int, ErrorCode& error) override {
      owner_.status = code;
      if (code < 100) error = http::error::bad_status;
    }
    void on_field_impl(http::field field, Slice name, Slice value, ErrorCode& error) override {
      if (is_header_done()) return;  // a trailer
      owner_.take_field(field, view(name), value);
      refuse_unknown_transfer(field, value, error);
      count_header(owner_.header_bytes, name, value, kResponseHeadLimit, error);
    }
    void on_header_impl(ErrorCode& error) override { owner_.take_head(*this, error); }
    void on_body_init_impl(const boost::optional<uint64_t>&, ErrorCode&) override {}
    size_t on_body_impl(Slice body, ErrorCode& error) override {
      return owner_.take_body(body, error);
    }
    void on_chunk_header_impl(uint64_t, Slice, ErrorCode&) override {}
    size_t on_chunk_body_impl(uint64_t, Slice body, ErrorCode& error) override {
      return owner_.take_body(body, error);
    }
    void on_finish_impl(ErrorCode&) override {}

    Impl& owner_;
  };

  explicit Impl(Sink& sink_in) : sink(sink_in) { reset(); }

  void reset() {
    parser.emplace(*this);
    stopped = head_taken = false;
    status = 0;
    header_bytes = 0;
    problem.clear();
    kept.clear();
    // No request after a large one should go on paying for its buffer.
    if (kept.capacity() > kResponseHeadLimit) kept.shrink_to_fit();
    for (std::string* text : {&content_type, &retry_after, &server, &prony_device}) text->clear();
  }

  void take_field(http::field field, std::string_view name, Slice value) {
    switch (field) {
      case http::field::content_type:
        assign_media_type(content_type, view(value));
        break;
      case http::field::retry_after:
        assign(retry_after, value);
        break;
      case http::field::server:
        assign(server, value);
        break;
      case http::field::unknown:
        if (equal_ignoring_case(name, "x-prony-device")) assign(prony_device, value);
        break;
      default:
        break;
    }
  }
  void take_head(const Parser& head, ErrorCode& ec) {
    if (status == 101) ec = http::error::bad_status;  // we never ask to change the protocol
    if (status / 100 == 1) return;
    head_taken = true;
    sink.on_head({.status = status,
                  .content_type = content_type,
                  .retry_after = retry_after,
                  .server = server,
                  .prony_device = prony_device,
                  .keep_alive = head.keep_alive(),
                  .chunked = head.chunked(),
                  .until_close = !head.chunked() && !head.content_length()});
    if (stopped) ec = http::error::end_of_stream;
  }
  size_t take_body(Slice body, ErrorCode& ec) {
    if (!body.empty()) sink.on_body(view(body));
    if (stopped) ec = http::error::end_of_stream;
    return body.size();
  }

  bool is_done() const { return head_taken && parser->is_done(); }

  /// Uses up what it can of `bytes`; false: a malformed response.
  bool parse(std::string_view& bytes) {
    while (!bytes.empty()) {
      if (parser->is_done()) {
        if (head_taken) return true;
        parser.emplace(*this);  // that was a 1xx answer
      }
      ErrorCode ec;
      const size_t used = parser->put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
      bytes.remove_prefix(used);
      if (stopped) return true;
      if (ec == http::error::need_more) return true;
      if (ec) {
        problem = error_text(ec);
        return false;
      }
    }
    return true;
  }

  Sink& sink;
  std::optional<Parser> parser;
  bool stopped = false;
  bool head_taken = false;
  int status = 0;
  size_t header_bytes = 0;
  std::string kept;  // the start of a line that is not whole yet
  std::string problem;
  std::string content_type, retry_after, server, prony_device;
};

ResponseParser::ResponseParser(Sink& sink) : impl_(std::make_unique<Impl>(sink)) {}
ResponseParser::~ResponseParser() = default;

ResponseParser::Status ResponseParser::feed(std::string_view bytes) {
  Impl& s = *impl_;
  bool good = true;
  // Only the rest of the kept line is copied to it, so that it stays as short as a line.
  while (good && !s.kept.empty() && !bytes.empty() && !s.is_done() && !s.stopped) {
    const size_t line = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    s.kept.append(bytes.substr(0, line));
    bytes.remove_prefix(line);
    std::string_view all = s.kept;
    if (is_short_last_chunk(*s.parser, all)) continue;
    good = s.parse(all);
    // Also when stopped: the sink may have asked for that from within this buffer.
    s.kept.erase(0, s.kept.size() - all.size());
  }
  if (good && s.kept.empty() && !s.stopped) good = s.parse(bytes);
  if (good && !s.stopped) s.kept.append(bytes);
  if (!good) return Status::kBad;
  if (s.is_done()) return Status::kDone;
  // Beast waits for eight bytes before it judges: what is no HTTP may be shorter.
  if (s.status == 0 && !kStatusLine.starts_with(s.kept.substr(0, kStatusLine.size()))) {
    s.problem = "no status line";
    return Status::kBad;
  }
  if (s.kept.size() > kResponseHeadLimit) {
    s.problem = "head or chunk header longer than 64 KiB";
    return Status::kBad;
  }
  return Status::kMore;
}

ResponseParser::Status ResponseParser::finish() {
  Impl& s = *impl_;
  if (!until_close()) {
    s.problem = "closed before the response was whole";
    return Status::kBad;
  }
  ErrorCode ec;
  s.parser->put_eof(ec);
  if (!ec) return Status::kDone;
  s.problem = error_text(ec);
  return Status::kBad;
}

void ResponseParser::stop() {
  impl_->stopped = true;
}
void ResponseParser::reset() {
  impl_->reset();
}

bool ResponseParser::reusable() const {
  return impl_->parser->is_done() && impl_->parser->keep_alive() && impl_->kept.empty();
}

bool ResponseParser::until_close() const {
  return impl_->head_taken && impl_->parser->is_header_done() && impl_->parser->need_eof();
}

std::string ResponseParser::error() const {
  return impl_->problem;
}

// ---- requests

struct RequestParser::Impl {
  class Parser final : public http::basic_parser<true> {
   public:
    Parser(Impl& owner, const Limits& limits) : owner_(owner) {
      header_limit(static_cast<uint32_t>(std::min<size_t>(limits.header_bytes, UINT32_MAX)));
      body_limit(limits.body_bytes);
      eager(true);
    }

   private:
    void on_request_impl(http::verb, Slice method, Slice target, int version, ErrorCode&) override {
      owner_.take_request_line(view(method), view(target), version);
    }
    void on_response_impl(int, Slice, int, ErrorCode&) override {}
    void on_field_impl(http::field field, Slice name, Slice value, ErrorCode& error) override {
      if (is_header_done()) return;  // a trailer
      count_header(owner_.header_bytes, name, value, owner_.limits.header_bytes, error);
      owner_.request.headers.emplace_back(std::string(view(name)), std::string(view(value)));
      if (field == http::field::expect && equal_ignoring_case(view(value), "100-continue")) {
        owner_.expects_continue = true;
      }
      refuse_unknown_transfer(field, value, error);
    }
    void on_header_impl(ErrorCode&) override {}
    void on_body_init_impl(const boost::optional<uint64_t>& length, ErrorCode&) override {
      if (length) owner_.request.body.reserve(std::min<size_t>(*length, kBodyReserveLimit));
    }
    size_t on_body_impl(Slice body, ErrorCode&) override { return owner_.take_body(body); }
    void on_chunk_header_impl(uint64_t, Slice, ErrorCode&) override {}
    size_t on_chunk_body_impl(uint64_t, Slice body, ErrorCode&) override {
      return owner_.take_body(body);
    }
    void on_finish_impl(ErrorCode&) override {}

    Impl& owner_;
  };

  explicit Impl(const Limits& limits_in) : limits(limits_in) { reset(); }

  void reset() {
    parser.emplace(*this, limits);
    request = HttpRequest{};
    expects_continue = started = minor_0 = cut_line = false;
    header_bytes = 0;
    problem.clear();
  }

  void take_request_line(std::string_view method, std::string_view target, int version) {
    minor_0 = version == 10;
    request.method = method;
    // absolute-form, as proxies send it: http://host/path
    if (const size_t scheme = target.find("://"); scheme != target.npos && target.front() != '/') {
      const size_t path = target.find('/', scheme + 3);
      target = path == target.npos ? "/" : target.substr(path);
    }
    const size_t mark = target.find('?');
    request.path = target.substr(0, mark);
    if (mark != target.npos) request.query = target.substr(mark + 1);
  }
  size_t take_body(Slice body) {
    request.body.append(body.data(), body.size());
    return body.size();
  }

  Limits limits;
  std::optional<Parser> parser;
  HttpRequest request;
  bool expects_continue = false;
  bool started = false;
  bool minor_0 = false;
  bool cut_line = false;  // the unused bytes begin a line that was shown to the parser before
  size_t header_bytes = 0;
  std::string problem;
};

RequestParser::RequestParser(const Limits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

size_t RequestParser::feed(std::string_view bytes, Status& status) {
  Impl& s = *impl_;
  size_t used = 0;
  status = Status::kMore;
  // Empty lines before a request line are forgiven (RFC 9112, section 2.2).
  while (!s.started && used < bytes.size() && (bytes[used] == '\r' || bytes[used] == '\n')) ++used;
  const bool again = std::exchange(s.cut_line, false);
  if (again && is_short_last_chunk(*s.parser, bytes)) {
    s.cut_line = true;
    return 0;
  }
  while (used < bytes.size() && !s.parser->is_done()) {
    s.started = true;
    ErrorCode ec;
    used += s.parser->put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), ec);
    s.cut_line = ec == http::error::need_more;
    if (s.cut_line) break;
    if (!ec) continue;
    s.problem = error_text(ec);
    status = ec == http::error::header_limit ? Status::kHeaderTooLarge
             : ec == http::error::body_limit ? Status::kBodyTooLarge
                                             : Status::kBad;
    return used;
  }
  if (s.parser->is_done()) {
    status = Status::kDone;
  } else if (bytes.size() - used > s.limits.header_bytes) {
    status = Status::kHeaderTooLarge;
  }
  return used;
}

void RequestParser::reset() {
  impl_->reset();
}

bool RequestParser::take_expects_continue() {
  Impl& s = *impl_;
  return s.parser->is_header_done() && !s.parser->is_done() &&
         std::exchange(s.expects_continue, false);
}

bool RequestParser::started() const {
  return impl_->started;
}
HttpRequest& RequestParser::request() {
  return impl_->request;
}
bool RequestParser::keep_alive() const {
  return impl_->parser->keep_alive();
}
bool RequestParser::http_1_0() const {
  return impl_->minor_0;
}
std::string RequestParser::error() const {
  return impl_->problem;
}

}  // namespace prony::net
