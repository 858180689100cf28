#include "prony/core/temporary_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "prony/core/system.hpp"

namespace prony::core {

Result<TemporaryFolder> TemporaryFolder::create() {
  std::string path = environment_variable("TMPDIR").value_or("/tmp") + "/prony-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return environment_error(
        fmt::format("cannot make a folder {}: {}", path, std::strerror(errno)));
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace prony::core
