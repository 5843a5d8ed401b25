#include "lipscope/core/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// the number behind this word, or at the beginning of the file for none
std::optional<double> number_in(const std::string& path,
                                const std::string& word = "") {
  std::ifstream file(path);
  double number = 0;
  if (word.empty())
    return file >> number ? std::optional(number) : std::nullopt;
  for (std::string found; file >> found;)
    if (found == word)
      return file >> number ? std::optional(number) : std::nullopt;
  return std::nullopt;
}

// Pages that only cache files are given back when they are needed.
double left_in_group(const std::string& folder, const char* most,
                     const char* used) {
  const auto limit = number_in(folder + most), taken = number_in(folder + used);
  if (!limit || !taken) return unlimited;
  const std::string stat = folder + "/memory.stat";
  const double cached = number_in(stat, "inactive_file").value_or(0) +
                        number_in(stat, "active_file").value_or(0);
  return *limit - std::max(0.0, *taken - cached);
}

// Of the group of this process and of those around it.
double left_in_groups() {
  double left = std::min(
      left_in_group("/sys/fs/cgroup", "/memory.max", "/memory.current"),
      left_in_group("/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                    "/memory.usage_in_bytes"));
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3); group.size() > 1;
         group.resize(group.rfind('/')))
      left = std::min(left, left_in_group("/sys/fs/cgroup" + group,
                                          "/memory.max", "/memory.current"));
  }
  return left;
}

double left_of_addresses() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return unlimited;
  const double pages = number_in("/proc/self/statm").value_or(0);
  return static_cast<double>(limit.rlim_cur) -
         pages * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

}  // namespace

double machine_memory() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

double available_memory() {
  const auto kilobytes = number_in("/proc/meminfo", "MemAvailable:");
  return std::max(0.0, std::min({kilobytes ? *kilobytes * 1024 : unlimited,
                                 left_in_groups(), left_of_addresses()}));
}

std::string bytes_text(double bytes) {
  constexpr const char* units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  // more than petabytes: a power of ten says it better
  return fmt::format("{:.{}g} {}", bytes, unit == 0 ? 3 : 2 + (bytes >= 99.5),
                     units[unit]);
}

void require_memory(double bytes, std::string_view what) {
  // most questions are small, and asking the system takes longer than they do
  constexpr double always_there = 64e6;
  if (bytes <= always_there) return;
  const double free = available_memory();
  if (bytes <= free) return;
  throw InputError(fmt::format("{} needs about {}, and {} are free", what,
                               bytes_text(bytes), bytes_text(free)));
}

}  // namespace lipscope
