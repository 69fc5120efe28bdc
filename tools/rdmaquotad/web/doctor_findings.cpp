#include "tools/rdmaquotad/web/doctor_findings.hpp"

#include <cstdio>
#include <cstdlib>

namespace rdmaquota {
namespace {

using namespace std::chrono_literals;

constexpr auto between = 5min;
constexpr auto patience = 1min;

// In a child.
std::string run_doctor(const std::string& directory) {
    ::setenv("RDMAQUOTA_DIR", directory.c_str(), 1);
    auto* output = ::popen("exec rdmaquota doctor --json", "r");
    if (output == nullptr) return {};
    std::string text;
    char buffer[4096];
    while (const auto got = std::fread(buffer, 1, sizeof buffer, output)) text.append(buffer, got);
    ::pclose(output);
    return text;
}

}  // namespace

const Json& DoctorFindings::all() {
    const auto now = Clock::now();
    if (question_) take();
    if (question_ && now - *begun_ > patience) question_.reset();
    if (!question_ && (!begun_ || now - *begun_ > between)) begin();
    return findings_;
}

void DoctorFindings::begin() {
    begun_ = Clock::now();
    question_.emplace([this] { return run_doctor(directory_); });
}

void DoctorFindings::take() {
    const auto text = question_->answer(0ms);
    if (!text) return;
    question_.reset();
    const auto answer = Json::parse(*text, nullptr, false);
    findings_ = answer.is_object() ? answer.value("findings", Json()) : Json();
}

}  // namespace rdmaquota
