#include "prony/plan/render.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace prony::plan {
namespace {

using core::Json;

constexpr double kMs = 1e3;

Json maybe(const std::optional<double>& value, double unit = 1) {
  return value ? Json(*value * unit) : Json(nullptr);
}

const std::string& device_name(const Question& question, const Choice& choice) {
  return question.space.devices[choice.device].hardware.id;
}

perfmodel::Deployment deployment_of(const Question& question, const Choice& choice) {
  perfmodel::Deployment out;
  out.model = question.model;
  out.engine = question.engine;
  out.hardware = question.space.devices[choice.device].hardware;
  out.parallel = choice.parallel;
  out.weights = choice.weights;
  out.kv = automatic_kv(question.engine, question.model, choice.weights);
  return out;
}

Json choice_json(const Question& question, const Choice& choice) {
  return {{"hardware", device_name(question, choice)},
          {"replicas", choice.replicas},
          {"devices", choice.devices()},
          {"tp", choice.parallel.tp},
          {"pp", choice.parallel.pp},
          {"ep", choice.parallel.ep},
          {"dp", choice.parallel.dp},
          {"weight_dtype", perfmodel::weight_dtype_name(choice.weights)},
          {"kv_dtype",
           perfmodel::kv_dtype_name(automatic_kv(question.engine, question.model, choice.weights))},
          {"max_num_seqs", choice.max_sequences}};
}

Json candidate_json(const Question& question, const Candidate& candidate) {
  Json json = choice_json(question, candidate.choice);
  const Figures& f = candidate.figures;
  json["paid_devices"] = f.paid_devices;
  json["ttft_ms"] = {{"mean", f.ttft_s * kMs}, {"p99", maybe(f.ttft_p99_s, kMs)}};
  json["tpot_ms"] = {{"mean", f.tpot_s * kMs}, {"p99", maybe(f.tpot_p99_s, kMs)}};
  json["itl_ms"] = {{"mean", f.tpot_s * kMs}, {"p99", maybe(f.itl_p99_s, kMs)}};
  json["e2e_ms"] = {{"mean", f.e2e_s * kMs}, {"p99", maybe(f.e2e_p99_s, kMs)}};
  json["load_share"] = f.load_share;
  json["output_throughput"] = f.output_throughput;
  json["tokens_per_s_user"] = f.user_speed;
  json["tokens_per_s_device"] = f.device_speed;
  json["usd_per_hour"] = maybe(f.usd_per_hour);
  json["usd_per_million_output"] = maybe(f.usd_per_million_output);
  json["usd_per_million_total"] = maybe(f.usd_per_million_total);
  json["error_band"] = error_band_json(
      perfmodel::error_band(deployment_of(question, candidate.choice), question.load));
  return json;
}

Json question_json(const Question& question) {
  const auto& load = question.load;
  Json devices = Json::array();
  for (const Device& device : question.space.devices) {
    devices.push_back({{"hardware", device.hardware.id},
                       {"usd_per_hour", maybe(device.usd_per_hour)},
                       {"calibration", device.calibration == perfmodel::Calibration{}
                                           ? Json(nullptr)
                                           : Json{{"device", device.calibration.device},
                                                  {"link", device.calibration.link},
                                                  {"engine", device.calibration.engine}}},
                       {"price", device.price.empty() ? Json(nullptr) : Json(device.price)}});
  }
  return {{"model", question.model.id},
          {"engine", question.engine.id},
          {"input_len", load.input_tokens},
          {"output_len", load.output_tokens},
          {"request_rate", maybe(load.request_rate)},
          {"concurrency", maybe(load.concurrency)},
          {"slo", question.slo.empty() ? Json(nullptr) : Json(core::slo_text(question.slo))},
          {"spares", question.spares},
          {"max_devices", question.space.devices_max},
          {"devices", std::move(devices)}};
}

std::string ms(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.1f}", *seconds * kMs) : "-";
}

std::string money(const std::optional<double>& usd) {
  return usd ? fmt::format("{:.2f}", *usd) : "-";
}

std::string header() {
  return fmt::format("{:<14} {:<38} {:>7} {:>7} {:>7} {:>7} {:>7} {:>5} {:>7} {:>8} {:>8}\n", "",
                     "", "TTFT", "p99", "TPOT", "p99", "tok/s", "load", "tok/s", "USD/h", "USD/M") +
         fmt::format("{:<14} {:<38} {:>7} {:>7} {:>7} {:>7} {:>7} {:>5} {:>7} {:>8} {:>8}\n",
                     "device", "replicas x split", "[ms]", "[ms]", "[ms]", "[ms]", "a user", "[%]",
                     "a dev.", "paid", "output");
}

std::string line(const Question& question, const Candidate& each) {
  const Figures& f = each.figures;
  return fmt::format(
      "{:<14} {:<38} {:>7} {:>7} {:>7} {:>7} {:>7.1f} {:>5.0f} {:>7.0f} {:>8} {:>8}\n",
      device_name(question, each.choice), choice_text(each.choice), ms(f.ttft_s), ms(f.ttft_p99_s),
      ms(f.tpot_s), ms(f.tpot_p99_s), f.user_speed, 100 * f.load_share, f.device_speed,
      money(f.usd_per_hour), money(f.usd_per_million_output));
}

}  // namespace

Json error_band_json(const perfmodel::ErrorBand& band) {
  const auto metric = [](const perfmodel::MetricError& error) {
    if (!error.known()) return Json(nullptr);
    return Json{{"mape", error.mape}, {"bias", error.bias}, {"p90", error.p90}};
  };
  return {{"class", band.name},
          {"rows", band.rows},
          {"tpot", metric(band.tpot)},
          {"ttft", metric(band.ttft)},
          {"throughput", metric(band.throughput)}};
}

std::string choice_text(const Choice& choice) {
  std::string split = fmt::format("TP{}", choice.parallel.tp);
  if (choice.parallel.pp > 1) split += fmt::format(" PP{}", choice.parallel.pp);
  if (choice.parallel.dp > 1) split += fmt::format(" DP{}", choice.parallel.dp);
  if (choice.parallel.ep > 1) split += fmt::format(" EP{}", choice.parallel.ep);
  std::string out = fmt::format("{} x {}, {}", choice.replicas, split,
                                perfmodel::weight_dtype_name(choice.weights));
  if (choice.max_sequences > 0) out += fmt::format(", {} seqs", choice.max_sequences);
  return out;
}

Json answer_json(const Question& question, const Answer& answer) {
  const auto list = [&](const std::vector<Candidate>& candidates) {
    Json out = Json::array();
    for (const Candidate& each : candidates) out.push_back(candidate_json(question, each));
    return out;
  };
  Json reasons = Json::array();
  for (const Reason& each : answer.reasons) {
    reasons.push_back(
        {{"cause", cause_name(each.cause)},
         {"what", each.what},
         {"count", each.count},
         {"missed", each.missed},
         {"detail", each.detail},
         {"nearest", each.nearest ? choice_json(question, *each.nearest) : Json(nullptr)}});
  }
  return {
      {"schema", kPlanSchema},
      {"question", question_json(question)},
      {"configurations", answer.configurations},
      {"predicted", answer.predicted},
      {"feasible", answer.feasible},
      {"without_price", answer.without_price},
      {"cheapest", answer.cheapest ? candidate_json(question, *answer.cheapest) : Json(nullptr)},
      {"cheapest_by_device", list(answer.cheapest_by_device)},
      {"front", list(answer.front)},
      {"reasons", std::move(reasons)}};
}

std::string answer_table(const Question& question, const Answer& answer, size_t lines) {
  const auto& load = question.load;
  std::string out =
      fmt::format("{} under {}, {} input and {} output tokens, {}\n", question.model.id,
                  question.engine.name, load.input_tokens, load.output_tokens,
                  load.request_rate ? fmt::format("{:.4g} requests/s", *load.request_rate)
                                    : fmt::format("{:.0f} clients", *load.concurrency));
  out += fmt::format("objective {}; {} spare {}\n",
                     question.slo.empty() ? "below saturation" : core::slo_text(question.slo),
                     question.spares, question.spares == 1 ? "replica" : "replicas");
  out += fmt::format("{} configurations, {} feasible", answer.configurations, answer.feasible);
  if (answer.without_price > 0)
    out += fmt::format(", {} of them without a price", answer.without_price);
  out += "\n\n";
  if (answer.cheapest) {
    out += "cheapest of each device\n" + header();
    for (const Candidate& each : answer.cheapest_by_device) out += line(question, each);
    const auto band = perfmodel::error_band(deployment_of(question, answer.cheapest->choice), load);
    const auto share = [](const perfmodel::MetricError& error) {
      return error.known() ? fmt::format("+-{:.0f} %", 100 * error.mape) : "unknown";
    };
    out += fmt::format(
        "mean errors of predictions like the first ({}): TTFT {}, TPOT {}, "
        "throughput {}\n",
        band.name, share(band.ttft), share(band.tpot), share(band.throughput));
  }
  if (!answer.front.empty()) {
    const size_t count = answer.front.size(), shown = std::min(lines, count);
    out += fmt::format(
               "\nnothing is better in all of speed for a user, price and speed of a device "
               "({} of {} shown)\n",
               shown, count) +
           header();
    for (size_t i = 0; i < shown; ++i) {
      const size_t at = shown > 1 ? i * (count - 1) / (shown - 1) : 0;
      out += line(question, answer.front[at]);
    }
  }
  if (!answer.reasons.empty()) out += "\nwhy the others fail\n";
  for (const Reason& each : answer.reasons) {
    out += fmt::format("{:>9}  {}: {}", each.count, cause_name(each.cause), each.what);
    if (each.nearest) {
      out += fmt::format("; nearest {} {}: {}", device_name(question, *each.nearest),
                         choice_text(*each.nearest), each.detail);
    }
    out += "\n";
  }
  return out;
}

}  // namespace prony::plan
