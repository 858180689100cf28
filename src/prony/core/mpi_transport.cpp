#include "prony/core/mpi_transport.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

#include "prony/core/mpi_abi.hpp"
#include "prony/core/system.hpp"

namespace prony::core {
namespace {

class MpiTransport final : public Transport {
 public:
  MpiTransport(const MpiPlugin& plugin, int rank, int size)
      : plugin_(plugin), rank_(rank), size_(size) {}
  ~MpiTransport() override {
    // After a failure an orderly end would wait for ranks that never come.
    failed_ ? plugin_.abort(3) : plugin_.close();
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<void> send(int to, std::string_view bytes, Nanos t_give_up_ns) override {
    return said(plugin_.send(to, bytes.data(), bytes.size(), t_give_up_ns, error_.data(),
                             static_cast<uint32_t>(error_.size())));
  }
  Result<std::string> receive(int from, Nanos t_give_up_ns) override {
    uint64_t count = 0;
    const auto size = static_cast<uint32_t>(error_.size());
    if (auto done = said(plugin_.probe(from, &count, t_give_up_ns, error_.data(), size)); !done) {
      return done.error();
    }
    std::string bytes(count, '\0');
    auto done = said(plugin_.receive(from, bytes.data(), count, t_give_up_ns, error_.data(), size));
    return done ? Result<std::string>(std::move(bytes)) : Result<std::string>(done.error());
  }

 private:
  Result<void> said(int result) {
    if (result == 0) return {};
    failed_ = true;
    return environment_error(fmt::format("mpi: {}", error_.data()));
  }

  const MpiPlugin& plugin_;
  int rank_, size_;
  bool failed_ = false;
  std::array<char, 400> error_{};
};

// The library stays open: MPI's own threads and exit handlers live in it.
Result<void*> open_library() {
  if (const auto path = environment_variable("PRONY_MPI_PLUGIN"); path && !path->empty()) {
    if (void* library = ::dlopen(path->c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
    const char* reason = ::dlerror();
    return environment_error(fmt::format("PRONY_MPI_PLUGIN: {}", reason != nullptr ? reason : ""));
  }
  std::string reasons;
  for (const char* folder : {"", "/../lib"}) {
    const auto path = fmt::format("{}{}/{}", program_folder(), folder, kMpiPluginName);
    if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
    const char* reason = ::dlerror();
    if (reasons.empty() && reason != nullptr) reasons = reason;
  }
  return environment_error(reasons);
}

}  // namespace

std::optional<std::string> mpi_launcher(
    const std::function<std::optional<std::string>(const std::string&)>& variable) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const auto size = variable(name);
    if (size && !size->empty() && *size != "1") return name;
  }
  // Slurm sets its number of tasks in the shell of an allocation too; a step that srun started with
  // PMIx has a rank of that as well.
  const auto tasks = variable("SLURM_NTASKS");
  if (tasks && *tasks != "1" && variable("PMIX_RANK")) return "SLURM_NTASKS";
  return std::nullopt;
}

Result<std::unique_ptr<Transport>> open_mpi(const std::string& launcher) {
  auto library = open_library();
  if (!library) {
    return environment_error(
        fmt::format("{} is set, so an MPI launcher started this process, but its plugin cannot be "
                    "opened: {}; build with MPI installed (PRONY_MPI=ON), or unset the variable",
                    launcher, library.error().message));
  }
  const auto* plugin = static_cast<const MpiPlugin*>(::dlsym(library.value(), kMpiPluginSymbol));
  if (plugin == nullptr || plugin->version != kMpiAbiVersion) {
    return environment_error(fmt::format("{}: found version {}, expected {}", kMpiPluginName,
                                         plugin == nullptr ? 0 : plugin->version, kMpiAbiVersion));
  }
  int rank = 0, size = 1;
  std::array<char, 400> error{};
  if (plugin->open(&rank, &size, error.data(), static_cast<uint32_t>(error.size())) != 0) {
    return environment_error(fmt::format("mpi: {}", error.data()));
  }
  return std::unique_ptr<Transport>(new MpiTransport(*plugin, rank, size));
}

}  // namespace prony::core
