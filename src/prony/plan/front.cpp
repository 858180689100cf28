#include <algorithm>
#include <map>

#include "prony/plan/plan.hpp"

namespace prony::plan {

std::vector<Candidate> pareto_front(std::vector<Candidate> candidates) {
  std::erase_if(candidates, [](const Candidate& each) {
    return !each.figures.usd_per_million_output.has_value();
  });
  // Fastest first, so that only earlier ones can beat a later one; equals by price, then speed.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     if (a.figures.user_speed != b.figures.user_speed) {
                       return a.figures.user_speed > b.figures.user_speed;
                     }
                     if (*a.figures.usd_per_million_output != *b.figures.usd_per_million_output) {
                       return *a.figures.usd_per_million_output < *b.figures.usd_per_million_output;
                     }
                     return a.figures.device_speed > b.figures.device_speed;
                   });
  // Best device speed at each price so far; both rise together.
  std::map<double, double> stairs;
  std::vector<Candidate> front;
  for (const Candidate& each : candidates) {
    const double price = *each.figures.usd_per_million_output, speed = each.figures.device_speed;
    auto above = stairs.upper_bound(price);
    if (above != stairs.begin() && std::prev(above)->second >= speed) continue;
    while (above != stairs.end() && above->second <= speed) above = stairs.erase(above);
    stairs[price] = speed;
    front.push_back(each);
  }
  return front;
}

}  // namespace prony::plan
