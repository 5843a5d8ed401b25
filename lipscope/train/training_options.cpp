#include "lipscope/train/training_options.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace lipscope {

std::string name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adamw:
      return "adamw";
    case Optimizer::muon:
      return "muon";
  }
  throw std::invalid_argument("name_of: no such optimizer");
}

std::string name_of(Schedule::After after) {
  switch (after) {
    case Schedule::After::inverse_sqrt:
      return "inverse-sqrt";
    case Schedule::After::fixed:
      return "fixed";
    case Schedule::After::linear:
      return "linear";
  }
  throw std::invalid_argument("name_of: no such schedule");
}

std::string name_of(MatrixLimits limits) {
  switch (limits) {
    case MatrixLimits::one:
      return "one";
    case MatrixLimits::newhouse25:
      return "newhouse25";
  }
  throw std::invalid_argument("name_of: no such limits of matrices");
}

double Schedule::at(Index t) const {
  const double now = static_cast<double>(t);
  const double risen = static_cast<double>(std::max<Index>(1, warmup));
  if (now < risen) return rate * now / risen;
  switch (after) {
    case After::inverse_sqrt:
      return rate * std::sqrt(risen / now);
    case After::fixed:
      return rate;
    case After::linear: {
      const double end = static_cast<double>(steps) + 1;
      return now < end ? rate * (end - now) / (end - risen) : 0.0;
    }
  }
  throw std::invalid_argument("schedule: no such course");
}

}  // namespace lipscope
