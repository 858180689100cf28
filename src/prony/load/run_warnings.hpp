// What a run's figures say about the run itself: a queue that grew to the end, a window too short
// for its requests, a warm-up inside it. Warnings, never a verdict: the figures are what was
// measured, they only do not mean what they seem to. Thread safety: pure function.
#pragma once
#include "prony/record/record.hpp"

namespace prony::load {

/// Adds to `validity.warnings`.
void warn_about_run(const record::Metrics& metrics, record::Validity& validity);

/// Answers shorter than asked, which a script of fixed length must not average over.
void warn_about_early_stops(const record::TokenTally& answers, record::Validity& validity);

}  // namespace prony::load
