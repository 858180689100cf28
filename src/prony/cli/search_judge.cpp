// Judging probes, and what they come to in the end.
#include <fmt/format.h>

#include "prony/cli/search_runner.hpp"
#include "prony/core/check.hpp"

namespace prony::cli {
namespace {

record::SearchTerm term_of(const load::TermEvidence& evidence) {
  record::SearchTerm out;
  out.text = core::slo_text(evidence.term);
  out.allowed = evidence.allowed;
  out.n = evidence.n;
  out.bad = evidence.bad;
  out.effective_n = evidence.effective_n;
  out.verdict = load::verdict_name(evidence.verdict);
  if (evidence.n > 0) {
    out.estimate = evidence.estimate;
    out.lower = evidence.lower;
    out.upper = evidence.upper;
  }
  return out;
}

// The term that is furthest beyond what is allowed.
std::string limiting_term(const record::SearchLevel& level) {
  std::string out;
  double worst = 0;
  for (const auto& term : level.terms) {
    if (!term.estimate || term.verdict == "pass") continue;
    const double beyond = *term.estimate / term.allowed;
    if (beyond > worst) {
      worst = beyond;
      out = term.text;
    }
  }
  return out;
}

}  // namespace

void SearchRunner::judge(const load::ProbePlan& plan, const load::BenchRun& run) {
  if (plan.part == 1 || !evidence_) {
    auto fresh = load::SloEvidence::create(flags_.bench.slo, flags_.bench.goodput);
    PRONY_CHECK(fresh.ok(), "the plan had checked the objective");
    evidence_ = std::move(fresh).value();
    search_.levels.push_back({.level = plan.level});
  }
  auto& level = search_.levels.back();
  if (search_.probes.back().judged) {
    evidence_->begin_probe(plan.requests);
    run.rows.for_each([this](const record::RequestRow& row) { evidence_->add(row); });
    level.requests += plan.requests;
  }
  level.terms.clear();
  for (const auto& term : evidence_->terms()) level.terms.push_back(term_of(term));
  // A queue that grows has no latency that means anything: what was measured of it depends on how
  // long one looked.
  level.overloaded = level.overloaded || (search_.probes.back().judged &&
                                          search_.probes.back().metrics.overloaded == true);
  const auto verdict = level.overloaded ? load::Verdict::kFail : evidence_->verdict();
  level.verdict = load::verdict_name(verdict);
  std::string shares;
  for (const auto& term : level.terms) {
    if (term.n == 0) continue;
    shares += fmt::format("; {}: {} of {} beyond", term.text, term.bad, term.n);
  }
  note_(fmt::format("{:.6g}: {}{}{}", plan.level, level.verdict,
                    level.overloaded ? "; overloaded" : "", shares));
  machine_->report(verdict);
}

void SearchRunner::conclude() {
  const auto answer = machine_->answer();
  search_.lower = answer.lower;
  search_.upper = answer.upper;
  search_.value = answer.value;
  for (const auto& level : search_.levels) {
    if (!answer.upper || level.level != *answer.upper) continue;
    search_.limiting = limiting_term(level);
    search_.overloaded_above = level.overloaded;
  }
}

}  // namespace prony::cli
