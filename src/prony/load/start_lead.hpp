// Between the last preparation of a load and its instant 0: the loops take their phase in this
// time. A constant of Driver that GroupRun has to know. Thread safety: a constant.
#pragma once
#include "prony/core/clock.hpp"

namespace prony::load {

inline constexpr core::Nanos kStartLead = 20 * core::kNanosPerMilli;

}  // namespace prony::load
