// parse_url by Boost.URL, whose sources are compiled here (the distribution has no such library).
#include <fmt/format.h>

#include <boost/url/parse.hpp>
#include <boost/url/src.hpp>
#include <boost/url/url_view.hpp>

#include "prony/net/http_client.hpp"

namespace prony::net {

Result<Url> parse_url(std::string_view text, std::string_view flag) {
  const auto error = [&](std::string_view why) {
    return invalid_argument(fmt::format(
        "{}: found '{}' ({}), expected http://HOST[:PORT][/PATH] or https://...", flag, text, why));
  };
  const auto parsed = boost::urls::parse_uri({text.data(), text.size()});
  if (parsed.has_error()) return error("not a url");
  const boost::urls::url_view& view = parsed.value();
  Url url;
  switch (view.scheme_id()) {
    case boost::urls::scheme::http:
      break;
    case boost::urls::scheme::https:
      url.origin.tls = true;
      break;
    default:
      return error("not http or https");
  }
  url.origin.host = std::string(view.host_address());  // without the brackets of IPv6
  if (url.origin.host.empty()) return error("no host");
  if (view.has_userinfo()) return error("user and password are not supported");
  if (view.has_query() || view.has_fragment()) return error("it has a query or fragment");
  url.origin.port = url.origin.tls ? 443 : 80;
  if (view.has_port() && !view.port().empty()) {
    if (view.port_number() == 0) return error("the port is not in 1 to 65535");
    url.origin.port = view.port_number();
  }
  const auto path = view.encoded_path();
  url.path.assign(path.data(), path.size());
  // This Boost reads "http://host:8a" as port 8 and path "a".
  if (!url.path.empty() && url.path.front() != '/') return error("not a port");
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  return url;
}

}  // namespace prony::net
