#pragma once

#include <string>
#include <string_view>

/// How much memory there is, and a refusal in good time where more is asked
/// for.
///
/// Sizes are doubles: products of numbers from a command line do not overflow
/// in them, and an estimate needs no sixteen digits.
namespace lipscope {

/// All bytes of memory that the machine has.
double machine_memory();

/// Bytes that this process may still take: the least of what the machine has
/// available, what its control group (a container) allows, and what its limit
/// on addresses (ulimit -v) leaves. Infinite where nothing is known.
double available_memory();

/// 6.4 GB, 512 MB: in powers of 1000.
std::string bytes_text(double bytes);

/// InputError if `bytes` are more than is available:
///
///   {what} needs about 6.4 GB, and 3.1 GB are free
///
/// Asked before anything is allocated. Estimates count what surely is needed,
/// so that nothing is refused that would have fitted.
void require_memory(double bytes, std::string_view what);

}  // namespace lipscope
